// Calls of the driver's API that programs make beside the runtime's.
#include "construct.h"
#include <cuda.h>

namespace driver_calls {
CONSTRUCT(driver_calls, "0 1 9 1 1 0 6") {
    CUdevice device;
    CUcontext context;
    int major = 0, count = 0;
    char name[64] = "";
    size_t bytes = 0;
    const char *text = nullptr;
    printf("%d ", (int)cuInit(0));
    cuDeviceGetCount(&count);
    cuDeviceGet(&device, 0);
    cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
    cuDeviceGetName(name, sizeof name, device);
    cuDeviceTotalMem(&bytes, device);
    printf("%d %d %d %d ", count >= 1, major, name[0] != 0, bytes > 0);
    CUdeviceptr x;
    int in = 6, out = 0;
    cuDevicePrimaryCtxRetain(&context, device);
    cuCtxSetCurrent(context);
    cuMemAlloc(&x, sizeof in);
    cuMemcpyHtoD(x, &in, sizeof in);
    cuMemcpyDtoH(&out, x, sizeof out);
    cuGetErrorString(cuMemFree(x), &text);
    printf("%d %d\n", text == nullptr, out);
    return 0;
}
} // namespace driver_calls
