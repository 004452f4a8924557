# style: the row of the head as a variable
s/^            if \(masked && key0 \+ lane >= attended_keys\(p, row0 \+ r\)\) s = -INFINITY;/            const int row = row0 + warp * ROWS + r, last = attended_keys(p, row) - 1;\n            if (masked \&\& key0 + lane > last) s = -INFINITY;/
