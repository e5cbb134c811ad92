#include "core/context_proof.hpp"

#include <cstring>

#include "core/fork_state.hpp"
#include "core/platform.hpp"

namespace cfg {

namespace {

constexpr std::size_t kBytes = 4096;
constexpr int kMaxOrdinal = 1024;

// What this process retained, with the fork generation it did so in: a child's copy of the flag means nothing.
std::atomic<std::uint32_t> retained_in[kMaxOrdinal];

struct Step {
    ContextProof& proof;
    // True if the call succeeded; else the proof says which function failed, and how.
    template <typename Function, typename... Arguments>
    bool operator()(const char* name, Function function, Arguments... arguments) const noexcept {
        proof.function = name;
        if (function == nullptr) {
            proof.result = ProofResult::not_exported;
            return false;
        }
        proof.code = function(arguments...);
        if (proof.code != kSuccess) {
            proof.result = ProofResult::failed;
            return false;
        }
        return true;
    }
};

// The first device other than `ordinal` whose primary context is active, or -1. False if that can't be asked.
bool find_other(const Step& step, const DriverApi& api, int ordinal, int& other) noexcept {
    other = -1;
    for (int i = 0; i < step.proof.devices; ++i) {
        CuDevice device = 0;
        unsigned int flags = 0;
        int active = 0;
        if (!step("cuDeviceGet", api.device, &device, i) ||
            !step("cuDevicePrimaryCtxGetState", api.primary_state, device, &flags, &active)) {
            return false;
        }
        if (active != 0 && i != ordinal && other < 0) {
            other = i;
        }
    }
    return true;
}

bool round_trip(const Step& step, const DriverApi& api) noexcept {
    unsigned char written[kBytes];
    unsigned char read[kBytes];
    // Different in each process and each call, so that what another process left there can't pass for ours.
    auto seed = static_cast<std::uint32_t>(wall_clock() * 1e6) ^ (static_cast<std::uint32_t>(thread_id()) << 16U);
    for (std::size_t i = 0; i < kBytes; ++i) {
        seed = seed * 1664525U + 1013904223U;
        written[i] = static_cast<unsigned char>(seed >> 24U);
        read[i] = static_cast<unsigned char>(~written[i]);
    }
    CuDevicePtr memory = 0;
    if (!step("cuMemAlloc_v2", api.allocate, &memory, kBytes)) {
        return false;
    }
    const bool moved = step("cuMemcpyHtoD_v2", api.to_device, memory, static_cast<const void*>(written), kBytes) &&
                       step("cuMemcpyDtoH_v2", api.to_host, static_cast<void*>(read), memory, kBytes);
    ContextProof before = step.proof;
    const bool freed = step("cuMemFree_v2", api.release, memory);
    if (!moved) {
        step.proof = before; // the first failure is the one to tell
        return false;
    }
    if (freed && std::memcmp(written, read, kBytes) != 0) {
        step.proof.result = ProofResult::wrong_data;
        return false;
    }
    return freed;
}

bool retain_once(const Step& step, const DriverApi& api, int ordinal, CuDevice device, CuContext& context) noexcept {
    if (!step("cuDevicePrimaryCtxRetain", api.primary_retain, &context, device)) {
        return false;
    }
    const std::uint32_t mark = fork_state().generation.load() + 1;
    if (ordinal < kMaxOrdinal && retained_in[ordinal].exchange(mark) == mark && api.primary_release != nullptr) {
        api.primary_release(device); // one reference is enough, however often it is proved
    }
    return true;
}

} // namespace

ContextProof prove_primary_context(const DriverApi& api, int ordinal) noexcept {
    ContextProof proof;
    const Step step{proof};
    if (!step("cuInit", api.init, 0U) || !step("cuDeviceGetCount", api.device_count, &proof.devices)) {
        return proof;
    }
    if (ordinal < 0 || ordinal >= proof.devices) {
        proof.result = ProofResult::no_such_device;
        return proof;
    }
    CuDevice device = 0;
    CuContext context = nullptr;
    if (!find_other(step, api, ordinal, proof.other)) {
        return proof;
    }
    if (proof.other >= 0) {
        proof.result = ProofResult::other_device;
        return proof;
    }
    if (!step("cuDeviceGet", api.device, &device, ordinal) || !retain_once(step, api, ordinal, device, context) ||
        !step("cuCtxPushCurrent_v2", api.push, context)) {
        return proof;
    }
    const bool sound = round_trip(step, api);
    const ContextProof before = proof;
    CuContext popped = nullptr;
    const bool restored = step("cuCtxPopCurrent_v2", api.pop, &popped);
    if (!sound) {
        proof = before;
        return proof;
    }
    if (!restored) {
        return proof;
    }
    proof.has_uuid = api.uuid != nullptr && api.uuid(&proof.uuid, device) == kSuccess;
    proof.result = ProofResult::proved;
    return proof;
}

} // namespace cfg
