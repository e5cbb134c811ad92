// Systems that don't let pages be mapped, moved or made executable: no tripwire, a reason, and nothing else changed.
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <fstream>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "harness.hpp"

#ifndef PR_SET_MDWE
#define PR_SET_MDWE 65
#define PR_MDWE_REFUSE_EXEC_GAIN 1
#endif

using namespace harness;

namespace {
std::string memory_map() {
    std::ifstream maps("/proc/self/maps");
    std::string all;
    for (std::string line; std::getline(maps, line);) {
        // The heap and anonymous memory grow by what this function itself allocates.
        if (line.find('/') != std::string::npos || line.find('x') < line.find(' ') + 6) {
            all += line + "\n";
        }
    }
    return all;
}

bool starts_with(const char* text, const char* beginning) {
    return std::string(text).rfind(beginning, 0) == 0;
}

// From now on the system call answers with `error`; for ever, in this process and its children. With `protection`, only
// where its third argument asks for it.
void refuse(long number, int error, unsigned protection = 0) {
    const unsigned char if_other = protection == 0 ? 1 : 3;
    std::vector<sock_filter> code{
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(number), 0, if_other),
    };
    if (protection != 0) {
        code.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args) + 2 * sizeof(std::uint64_t)));
        code.push_back(BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, protection, 0, 1));
    }
    code.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<unsigned>(error)));
    code.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
    const sock_fprog program{static_cast<unsigned short>(code.size()), code.data()};
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) != 0) {
        skip("this system has no seccomp filters");
    }
}

// prepare() must fail with this reason, and leave everything as it was.
void refused_to_prepare(const Driver& driver, const char* reason) {
    const auto pristine = entry_bytes(driver, "cuDeviceGetCount");
    const std::string before = memory_map();
    CHECK(!wire::prepare(on_touch));
    CHECK(wire::state() == wire::State::unavailable);
    if (!starts_with(wire::reason(), reason)) {
        std::fprintf(stderr, "the reason is: %s\n", wire::reason());
        CHECK(starts_with(wire::reason(), reason));
    }
    CHECK(memory_map() == before);
    CHECK(entry_bytes(driver, "cuDeviceGetCount") == pristine);
    CHECK(!wire::arm());
    CHECK(in_child([&] {
              CHECK(!wire::arm());
              driver.device_count();
              return touches().count.load();
          }) == 0);
}

// Prepared, but the child can't arm.
void refused_to_arm(const Driver& driver, const char* reason) {
    const auto pristine = entry_bytes(driver, "cuDeviceGetCount");
    errno = 1234;
    CHECK(!wire::arm() && errno == 1234);
    CHECK(wire::state() == wire::State::unavailable);
    CHECK(starts_with(wire::reason(), reason));
    CHECK(entry_bytes(driver, "cuDeviceGetCount") == pristine);
    driver.device_count();
    CHECK(touches().count == 0);
}
} // namespace

SCENARIO(memory_deny_write_execute) {
    if (prctl(PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN, 0, 0, 0) != 0) {
        skip("this kernel has no PR_SET_MDWE");
    }
    refused_to_prepare(driver, "the system refused to make stubs executable: mprotect (EACCES)");
}

SCENARIO(seccomp_mprotect) {
    refuse(SYS_mprotect, EPERM);
    refused_to_prepare(driver, "the system refused to make stubs executable: mprotect (EPERM)");
}

SCENARIO(seccomp_mremap) {
    refuse(SYS_mremap, EPERM);
    refused_to_prepare(driver, "the system refused to move code pages: mremap (EPERM)");
}

SCENARIO(seccomp_mmap_executable) {
    refuse(SYS_mmap, EACCES, PROT_EXEC);
    refused_to_prepare(driver, "the system refused to map libcuda's code once more: mmap (EACCES)");
}

SCENARIO(seccomp_memfd_create) {
    refuse(SYS_memfd_create, EPERM);
    CHECK(wire::prepare(on_touch));
    CHECK(in_child([&] {
              CHECK(wire::arm());
              driver.device_count();
              return touches().count.load();
          }) == 1);
}

SCENARIO(no_descriptors) {
    rlimit limit{};
    CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    limit.rlim_cur = 0;
    const auto pristine = entry_bytes(driver, "cuDeviceGetCount");
    CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    CHECK(!wire::prepare(on_touch));
    CHECK(starts_with(wire::reason(), "the file of libcuda can't be opened (EMFILE)"));
    CHECK(entry_bytes(driver, "cuDeviceGetCount") == pristine);
    // Not tried again at every fork, but after something was loaded, or after disarm().
    limit.rlim_cur = limit.rlim_max;
    CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    CHECK(!wire::prepare(on_touch));
    wire::disarm();
    CHECK(wire::prepare(on_touch));
}

SCENARIO(address_space_used_up) {
    rlimit limit{};
    limit.rlim_cur = limit.rlim_max = 1; // nothing more can be mapped
    CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
    CHECK(!wire::prepare(on_touch));
    CHECK(wire::state() == wire::State::unavailable);
    std::printf("%s\n", wire::reason());
    CHECK(std::string(wire::reason()).find("ENOMEM") != std::string::npos);
}

SCENARIO(mremap_refused_in_child) {
    CHECK(wire::prepare(on_touch));
    CHECK(in_child([&] {
              refuse(SYS_mremap, EPERM);
              refused_to_arm(driver, "the system refused to put the tripwire in place: mremap (EPERM)");
              return 0;
          }) == 0);
}

// So many mappings that no more can be split.
SCENARIO(too_many_mappings) {
    CHECK(wire::prepare(on_touch));
    CHECK(in_child([&] {
              long limit = 0;
              std::ifstream("/proc/sys/vm/max_map_count") >> limit;
              if (limit > 100000) {
                  skip("vm.max_map_count is too large to be reached quickly");
              }
              // Every other page differs in protection: as many mappings as pages.
              const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
              const auto pages = static_cast<std::size_t>(limit);
              auto* const area = static_cast<unsigned char*>(
                  mmap(nullptr, pages * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
              CHECK(area != MAP_FAILED);
              for (std::size_t i = 1; i < pages && mprotect(area + i * page, page, PROT_READ) == 0; i += 2) {
              }
              refused_to_arm(driver, "the system refused to put the tripwire in place: mremap (ENOMEM)");
              return 0;
          }) == 0);
}

// Armed, and only then the system stops pages from being moved: the call can't reach the real function. It answers what
// the driver answers in a forked child, is reported once, and the process lives.
SCENARIO(no_way_back) {
    CHECK(wire::prepare(on_touch));
    CHECK(in_child([&] {
              CHECK(wire::arm());
              refuse(SYS_mremap, EPERM);
              CHECK(driver.device_count() == 3);
              CHECK(driver.current_context() == 3);
              CHECK(driver.device_count() == 3);
              CHECK(touches().count == 1);
              CHECK(wire::state() == wire::State::tripped);
              CHECK(in_child([&] { return driver.device_count(); }) == 3);
              CHECK(touches().count == 1);
              wire::disarm();
              CHECK(driver.device_count() == 3);
              return 0;
          }) == 0);
}
