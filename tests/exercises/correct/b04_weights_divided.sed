# style: both terms divided before they are added
s/O\[\(size_t\)row \* p.d \+ c\] = any \? .*/float kept = any ? l_old * rescale \/ l_new : 0.0f;\n                    O[(size_t)row * p.d + c] = any ? fmaf(kept, O_old, sum \/ l_new) : 0.0f;/
