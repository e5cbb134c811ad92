#pragma once

#include <cstddef>
#include <cstdint>

struct Large {
    long values[12];
};
struct Small {
    long whole;
    double part;
};
struct Pair {
    float a;
    float b;
};

// Everything a caller can see before and after a call, as the assembly of the fake driver stores it.
struct Registers {
    std::uint64_t general[32];
    alignas(64) unsigned char vector[32][64];
    std::uint64_t control; // x86-64: MXCSR and the x87 control word
};
