#error "the simulated device has no NVML, whose sensors are a card's: leave them out where __SIMT__ is defined"
