# style: the score by a lambda, two cases of the maximum
s/^        s \*= rsqrtf.*/        auto scaled = [scale = p.scale](float x) { return x * scale; };\n        s = scaled(s);/
s/float m_new = fmaxf\(m, s\);/float m_new = s > m ? s : m;/
