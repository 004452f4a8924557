// expect: 1 1000 3 2 once
#include "construct.h"
#include <atomic>
#include <memory>
#include <mutex>

static std::atomic<int> counter{0};
static std::once_flag flag;

static int devices() {
    int count;
    must(cudaGetDeviceCount(&count), "cudaGetDeviceCount");
    return count > 0;
}

static int ask_once() {
    static const int answer = devices(); // guarded by an atomic variable of the compiler's
    return answer;
}

int main() {
    for (int i = 0; i < 500; i++) counter += 2;
    int wanted = 1000;
    counter.compare_exchange_strong(wanted, 1000);
    auto value = std::make_shared<int>(3), other = value;
    printf("%d %d %d %ld", ask_once(), counter.load(), *value, value.use_count());
    std::call_once(flag, [] { printf(" once\n"); });
}
