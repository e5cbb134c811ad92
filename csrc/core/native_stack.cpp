#include "core/native_stack.hpp"

#include <atomic>
#include <cstdint>
#include <cstring>
#include <dlfcn.h>
#include <unwind.h>

#include "core/safe_output.hpp"

namespace cfg {

namespace {

std::atomic<const void*> interpreter_base{nullptr};

constexpr int kDeepest = 96; // the driver's own frames are among them

struct Addresses {
    int count = 0;
    std::uintptr_t at[kDeepest];
};

_Unwind_Reason_Code collect(_Unwind_Context* context, void* argument) noexcept {
    auto& addresses = *static_cast<Addresses*>(argument);
    const std::uintptr_t address = _Unwind_GetIP(context);
    if (address == 0 || addresses.count == kDeepest) {
        return _URC_END_OF_STACK;
    }
    addresses.at[addresses.count++] = address - 1; // inside the call, not behind it
    return _URC_NO_REASON;
}

const char* file_part(const char* path) noexcept {
    const char* const slash = std::strrchr(path, '/');
    return slash == nullptr ? path : slash + 1;
}

bool is_below_the_caller(const Dl_info& info) noexcept {
    static const char here = 0;
    Dl_info own{};
    if (dladdr(&here, &own) != 0 && own.dli_fbase == info.dli_fbase) {
        return true;
    }
    const char* const file = file_part(info.dli_fname);
    return std::strcmp(file, "cuda_fork_guard_hook.so") == 0 || std::strncmp(file, "libcuda.so", 10) == 0;
}

// "libcudart.so.12: cudaGetDeviceCount"; "libfoo.so+0x1234" for a function that isn't exported. The latter says little
// beside a named neighbour of the same library, and is left out there.
class Namer {
  public:
    explicit Namer(NativeStack& stack) noexcept : stack_(stack) {}

    void add(const Dl_info& info, std::uintptr_t address) noexcept {
        const bool named = info.dli_sname != nullptr;
        if (info.dli_fbase == library_ && !named) {
            return;
        }
        if (info.dli_fbase == library_ && !last_is_named_ && stack_.count > 0) {
            --stack_.count;
        }
        library_ = info.dli_fbase;
        last_is_named_ = named;
        Text text(stack_.names[stack_.count++], NativeStack::kName);
        text.put(file_part(info.dli_fname));
        if (named) {
            text.put(": ").put(info.dli_sname);
        } else {
            text.put("+").hex(address - reinterpret_cast<std::uintptr_t>(info.dli_fbase));
        }
    }

  private:
    NativeStack& stack_;
    const void* library_ = nullptr;
    bool last_is_named_ = false;
};

} // namespace

void set_interpreter(const void* address) noexcept {
    Dl_info info{};
    interpreter_base.store(address != nullptr && dladdr(address, &info) != 0 ? info.dli_fbase : nullptr);
}

void capture_native_stack(NativeStack& stack) noexcept {
    Addresses addresses;
    // Not backtrace(): its first call loads a library.
    _Unwind_Backtrace(collect, &addresses);
    stack.count = 0;
    Namer namer(stack);
    bool caller_reached = false;
    for (int at = 0; at < addresses.count && stack.count < NativeStack::kMax; ++at) {
        Dl_info info{};
        const bool known = dladdr(reinterpret_cast<void*>(addresses.at[at]), &info) != 0 && info.dli_fname != nullptr;
        if (known && info.dli_fbase == interpreter_base.load()) {
            break;
        }
        // One that belongs to no library is generated code: a trampoline of ours, or some compiler's. It has no name.
        caller_reached = caller_reached || (known && !is_below_the_caller(info));
        if (caller_reached && known) {
            namer.add(info, addresses.at[at]);
        }
    }
}

} // namespace cfg
