# style: the first row less its remainder
s/int first_row = .*/const int first = first_attending_query(p, key0);\n    int first_row = first - first % T::Br;/
