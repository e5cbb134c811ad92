#include "core/tripwire_swap.hpp"

#include <cerrno>
#include <ctime>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/tripwire_copy.hpp"

namespace cfg::tripwire {

namespace {
constexpr unsigned kPhaseBits = 2;
constexpr unsigned kNapsForVfork = 500; // some 50 ms

std::uint64_t word(Phase phase, pid_t pid) noexcept {
    return static_cast<std::uint64_t>(pid) << kPhaseBits | static_cast<std::uint64_t>(phase);
}

Phase phase_of(std::uint64_t word) noexcept {
    return static_cast<Phase>(word & ((1U << kPhaseBits) - 1));
}

bool move_over_text(const Image& image, unsigned char* pages) noexcept {
    const std::size_t length = image.stretch.length;
    return mremap(pages, length, length, MREMAP_MAYMOVE | MREMAP_FIXED, image.stretch.text) != MAP_FAILED;
}

// What the memory itself says, for a mark that was left over.
bool jumps_are_in_place(const Image& image) noexcept {
    for (std::size_t i = 0; i < image.count; ++i) {
        if (image.entries[i].trapped) {
            return has_jump(image.entries[i]);
        }
    }
    return false;
}
// Ends what was begun by a thread that this process doesn't have: forked in the middle of it.
void take_over(Image& image, std::uint64_t left) noexcept {
    const Phase begun = phase_of(left);
    if (!image.phase.compare_exchange_strong(left, word(begun, getpid()), std::memory_order_acq_rel)) {
        return; // another thread does it
    }
    const bool armed = jumps_are_in_place(image);
    if (!armed && begun == Phase::restoring) {
        image.copies.store(nullptr, std::memory_order_release); // both are used up
    }
    image.phase.store(word(armed ? Phase::armed : Phase::pristine, 0), std::memory_order_release);
}

// Waits for another thread that is changing the mapping, which takes it some 50 us. A mark with another pid is either
// left over or that of a vfork child, which shares our memory and is at work: `naps_for_others` gives it time.
std::uint64_t wait_until_settled(Image& image, unsigned naps_for_others) noexcept {
    const pid_t self = getpid();
    for (unsigned turn = 0;; ++turn) {
        const std::uint64_t seen = image.phase.load(std::memory_order_acquire);
        if (phase_of(seen) == Phase::pristine || phase_of(seen) == Phase::armed) {
            return seen;
        }
        if (static_cast<pid_t>(seen >> kPhaseBits) != self && turn >= naps_for_others) {
            take_over(image, seen);
            continue;
        }
        // Not nanosleep(), which is a cancellation point. Not only sched_yield(), which would starve a thread of lower
        // real-time priority that is to finish.
        const timespec nap{0, 50000};
        syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &nap, nullptr);
    }
}
} // namespace

bool swap_in(Image& image, int& error) noexcept {
    std::uint64_t seen = 0;
    do {
        // In a fork handler there is nobody to wait for.
        seen = wait_until_settled(image, 0);
        if (phase_of(seen) == Phase::armed) {
            return true;
        }
    } while (!image.phase.compare_exchange_weak(seen, word(Phase::arming, getpid()), std::memory_order_acq_rel));

    unsigned char* const copies = image.copies.load(std::memory_order_acquire);
    bool armed = false;
    error = 0;
    if (copies != nullptr && patched_copy_is_intact(image)) {
        armed = move_over_text(image, copies);
        error = armed ? 0 : errno;
    }
    image.phase.store(word(armed ? Phase::armed : Phase::pristine, 0), std::memory_order_release);
    return armed;
}

bool swap_out(Image& image) noexcept {
    std::uint64_t seen = 0;
    do {
        seen = wait_until_settled(image, kNapsForVfork);
        if (phase_of(seen) == Phase::pristine) {
            return true;
        }
    } while (!image.phase.compare_exchange_weak(seen, word(Phase::restoring, getpid()), std::memory_order_acq_rel));

    unsigned char* const copies = image.copies.load(std::memory_order_acquire);
    const bool put_back = move_over_text(image, copies + image.stretch.length);
    if (put_back) {
        image.copies.store(nullptr, std::memory_order_release);
    }
    image.phase.store(word(put_back ? Phase::pristine : Phase::armed, 0), std::memory_order_release);
    return put_back;
}

bool exchange_copies(Image& image, unsigned char* copies) noexcept {
    std::uint64_t seen = wait_until_settled(image, 0);
    if (phase_of(seen) != Phase::pristine ||
        !image.phase.compare_exchange_strong(seen, word(Phase::arming, getpid()), std::memory_order_acq_rel)) {
        return false;
    }
    // In this order: a child forked between the two still has whatever it finds in `copies`.
    unsigned char* const former = image.copies.exchange(copies, std::memory_order_acq_rel);
    if (former != nullptr) {
        unmap_copies(image, former);
    }
    image.phase.store(word(Phase::pristine, 0), std::memory_order_release);
    return true;
}

bool is_armed(Image& image) noexcept {
    return phase_of(wait_until_settled(image, 0)) != Phase::pristine;
}

} // namespace cfg::tripwire
