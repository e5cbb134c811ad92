// What the tripwire keeps of one loaded libcuda. Built in ordinary context, then read by threads that run into a jump
// and by fork handlers: once it is among images() only the atomics change, and what is marked as prepare()'s own.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <sys/types.h>

namespace cfg::tripwire {

struct Image;

struct Entry {
    unsigned char* address;
    const char* name; // in libcuda's own string table
    Image* image;
    const unsigned char* thunk; // where the jump goes
    std::size_t room;           // bytes that belong to this function alone
    bool trapped;               // false: unlike the file when the copy was made
    std::uint64_t original;     // the first eight bytes, as the file has them
    std::uint64_t jump;         // and as the patched copy has them
};

// The part of the text that is swapped, as one piece. It reaches from the first page with an entry to the last: one
// mremap is atomic for every other thread and costs 40 us, where one for each of the 10 to 20 runs of entry pages costs
// 180 us. The copy is a private mapping of the file, so only the pages that are written (those with entries) cost
// memory.
struct Stretch {
    unsigned char* text;
    std::size_t length;
    off_t offset; // of text in the file
    // The whole executable segment, as /proc names its mapping.
    std::uintptr_t segment_begin;
    std::uintptr_t segment_end;
};

// Who is changing the mapping of an image, with the pid: a thread that was in the middle of it does not exist in a
// child forked meanwhile, and whoever finds its mark there must not wait for it.
enum class Phase : std::uint64_t { pristine = 0, armed, arming, restoring };

struct Image {
    std::uintptr_t base = 0; // as the loader says it; a held library keeps it to itself
    void* handle = nullptr;  // keeps libcuda loaded
    bool refused = false;    // prepare()'s: don't try its copies again before libraries are loaded or unloaded
    const char* path = nullptr;
    Entry* entries = nullptr;
    std::size_t count = 0;
    std::size_t untrappable = 0; // exported functions that never became an entry: too short, unaligned
    Stretch stretch{};
    unsigned char* thunks = nullptr;
    std::size_t thunks_length = 0;
    std::atomic<std::size_t> trapped{0};

    // The patched copy at `copies`, the pristine pages at `copies + stretch.length`; null: nothing is ready. Arming
    // moves the first over the text, the first touch the second.
    std::atomic<unsigned char*> copies{nullptr};
    std::atomic<std::uint64_t> phase{0}; // Phase, and above it the pid of who is arming or restoring
};

constexpr std::size_t kMaxImages = 4;

} // namespace cfg::tripwire
