# style: a variable for the column
s/V_reg\[t\] = lane \* COLS \+ t < p.d \? .*/{\n                    const int column = t * WARP + lane;\n                    V_reg[t] = column < p.d ? V_smem[key * p.d + column] : 0.0f;\n                }/
