// Proves through the driver's own API that this process has a primary context of its own on a device: it is retained,
// memory is allocated in it, written, read back, compared and freed.
#pragma once

#include "core/driver.hpp"

namespace cfg {

enum class ProofResult : int {
    proved = 0,
    no_such_device, // `devices` says how many there are
    other_device,   // a context is active on `other`
    not_exported,   // this libcuda lacks `function`
    failed,         // `function` returned `code`
    wrong_data,     // what was read back is not what was written
};

struct ContextProof {
    ProofResult result = ProofResult::failed;
    const char* function = "";
    CuResult code = 0;
    int devices = 0;
    int other = -1;
    bool has_uuid = false;
    CuUuid uuid{};
};

// Ordinary context, without an interpreter lock: each call may take seconds. The context stays retained for the life of
// the process, once however often it is proved, and is not the thread's current context afterwards.
ContextProof prove_primary_context(const DriverApi& api, int ordinal) noexcept;

} // namespace cfg
