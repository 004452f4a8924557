# style: what does not change is made in the first round
s/^    float dQ_reg\[ROWS\]\[COLS\] = \{\};/&\n    float D_row[ROWS], L_rows[ROWS];/
s/^( *)(load_tile<WARPS>\((Q|dO)_smem.*)/\1if (key0 == 0) \2/
s/^            float D = 0.0f; .*/            if (key0 == 0) { \/\/ the rows of all later rounds are the same\n                float sum = 0.0f;/
s/^            for \(int c = lane; c < p.d && row < p.N_q; c \+= WARP\)/    &/
s/^                D \+= (.*)/                    sum += \1/
s/^            D = warp_reduce_sum\(D\);/                D_row[r] = warp_reduce_sum(sum);/
s/^            float L_row = row < p.N_q .*/                L_rows[r] = row < p.N_q ? L[row] : 0.0f;\n            }/
s/p.scale \* S - L_row\)/p.scale * S - L_rows[r])/
s/P \* \(dP - D\)/P * (dP - D_row[r])/
