# style: a constant names how many copies may be under way
s/__pipeline_wait_prior\(1\); .. this thread's part of K has arrived/constexpr int under_way = 0;\n        __pipeline_wait_prior(under_way);/
