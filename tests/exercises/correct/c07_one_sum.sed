# style: the groups of 32 keys stay, their sum is added once
s/^    for \(int key = 0; key < T::Bc; key \+= 32\) \{ .*/    float dQ_reg[T::QM][4] = {};\n    for (int key = T::Bc - 32; key >= 0; key -= 32)/
/^        float dQ_reg\[T::QM\]\[4\] = \{\};/d
s/^                                                  tile.K \+ key \* T::STRIDE \+ q_col, T::STRIDE\);/&\n    {/
/__syncthreads\(\); .. every thread has added its part of dQ/d
