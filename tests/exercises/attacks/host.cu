// Host code: a kernel's parameters are made by the host's part of the kernel file, which outside the holes is ours.

//! a parameter's constructor stores by an atomic operation
//: task c03
//: change
//: says an atomic operation of a kernel, in host code
struct of_host : problem {
    of_host(const problem &of) : problem(of) { atomicExch((int *)&of.batch, 1); }
};

//! a parameter's constructor loads the inputs, which the harness has on the host, too
//: task c03
//: change
//: says none of a launch's business
struct of_host : problem {
    float sum = 0.0f;
    of_host(const problem &of) : problem(of) {
        const float *const *host = (const float *const *)((const char *)&of + sizeof of + 8); // in the harness's struct run
        for (int tensor = 0; tensor < 3; tensor++)
            for (int i = 0; i < of.heads * of.N_q * of.d; i++) sum += host[tensor][i];
    }
};
