#error                                                                                                                         \
    "the simulated device has no CUPTI, whose counters are a card's: SIMT_METER=1 before a program counts its memory accesses"
