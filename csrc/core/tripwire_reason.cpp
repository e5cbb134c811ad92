#include "core/tripwire_reason.hpp"

#include <atomic>
#include <cerrno>

#include "core/safe_output.hpp"

namespace cfg::tripwire {

namespace {
// Two buffers: who reads the old sentence while a new one is written still reads a whole one.
char g_buffers[2][192];
std::atomic<unsigned> g_writes{0};
std::atomic<const char*> g_current{""};

// strerror may allocate and translates; only these are to be expected.
const char* error_name(int error) noexcept {
    switch (error) {
    case EPERM:
        return "EPERM";
    case EACCES:
        return "EACCES";
    case ENOMEM:
        return "ENOMEM";
    case ENOENT:
        return "ENOENT";
    case EAGAIN:
        return "EAGAIN";
    case EMFILE:
        return "EMFILE";
    case EINVAL:
        return "EINVAL";
    case ENOSYS:
        return "ENOSYS";
    case ENODEV:
        return "ENODEV";
    case EFAULT:
        return "EFAULT";
    default:
        return nullptr;
    }
}
} // namespace

void set_reason(const char* text, int error) noexcept {
    char* const buffer = g_buffers[g_writes.fetch_add(1, std::memory_order_relaxed) & 1U];
    Text sentence(buffer, sizeof g_buffers[0]);
    sentence.put(text);
    if (error != 0) {
        sentence.put(" (");
        const char* const name = error_name(error);
        if (name != nullptr) {
            sentence.put(name);
        } else {
            sentence.put("errno ").decimal(error);
        }
        sentence.put(")");
    }
    g_current.store(buffer, std::memory_order_release);
}

const char* reason() noexcept {
    return g_current.load(std::memory_order_acquire);
}

} // namespace cfg::tripwire
