#pragma once
#include "block/block_exchange.cuh"
#include "device/device_scan.cuh"
