# style: the row of Q is scaled once, before the loop
s/Q_reg\[c\] = c < p.d \? Q\[c\] : 0.0f;/Q_reg[c] = c < p.d ? p.scale * Q[c] : 0.0f;/
/s \*= rsqrtf/d
