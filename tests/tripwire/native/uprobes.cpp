// Uprobes: breakpoints that the kernel sets in every mapping of a file, at any time.
#include <cstring>
#include <dlfcn.h>
#include <fstream>
#include <link.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "harness.hpp"

using namespace harness;

namespace {
// Counts the calls of a function in all processes, by a breakpoint that the kernel sets: as the tools do that watch a
// machine.
class Uprobe {
  public:
    Uprobe(const Driver& driver, const char* name) {
        int type = 0;
        std::ifstream("/sys/bus/event_source/devices/uprobe/type") >> type;
        if (type == 0) {
            skip("this kernel has no uprobes for perf_event_open");
        }
        link_map* map = nullptr;
        CHECK(dlinfo(driver.handle, RTLD_DI_LINKMAP, &map) == 0);
        perf_event_attr attributes{};
        attributes.size = sizeof attributes;
        attributes.type = static_cast<unsigned>(type);
        attributes.config1 = reinterpret_cast<std::uintptr_t>(map->l_name);
        attributes.config2 = file_offset(driver, reinterpret_cast<std::uintptr_t>(driver.address(name)) - map->l_addr);
        for (int cpu = 0; cpu < static_cast<int>(sysconf(_SC_NPROCESSORS_CONF)); ++cpu) {
            const auto one =
                static_cast<int>(syscall(SYS_perf_event_open, &attributes, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC));
            if (one >= 0) {
                descriptors_.push_back(one);
            }
        }
        if (descriptors_.empty()) {
            skip("uprobes are not allowed here");
        }
    }
    ~Uprobe() {
        for (const int one : descriptors_) {
            close(one);
        }
    }
    Uprobe(const Uprobe&) = delete;
    Uprobe& operator=(const Uprobe&) = delete;
    std::uint64_t calls() const {
        std::uint64_t total = 0;
        for (const int one : descriptors_) {
            std::uint64_t count = 0;
            CHECK(read(one, &count, sizeof count) == sizeof count);
            total += count;
        }
        return total;
    }

  private:
    static std::uint64_t file_offset(const Driver& driver, std::uintptr_t address) {
        struct Search {
            std::uintptr_t address;
            const void* inside;
            std::uint64_t offset;
        } search{address, driver.address("cuInit"), 0};
        dl_iterate_phdr(
            [](dl_phdr_info* info, std::size_t, void* data) {
                auto& wanted = *static_cast<Search*>(data);
                for (int i = 0; i < info->dlpi_phnum; ++i) {
                    const ElfW(Phdr) & header = info->dlpi_phdr[i];
                    const std::uintptr_t begin = info->dlpi_addr + header.p_vaddr;
                    const auto inside = reinterpret_cast<std::uintptr_t>(wanted.inside);
                    if (header.p_type == PT_LOAD && inside >= begin && inside - begin < header.p_memsz) {
                        wanted.offset = wanted.address - header.p_vaddr + header.p_offset;
                    }
                }
                return 0;
            },
            &search);
        return search.offset;
    }

    std::vector<int> descriptors_;
};
} // namespace

SCENARIO(uprobe_before_prepare) {
    const Uprobe probe(driver, "cuDeviceGetCount");
    driver.device_count();
    CHECK(probe.calls() == 1);
    CHECK(wire::prepare(on_touch));
    CHECK(wire::skipped() >= 1);
    CHECK(in_child([&] {
              CHECK(wire::arm());
              driver.device_count(); // not trapped, and right
              CHECK(touches().count == 0);
              driver.current_context();
              CHECK(touches().count == 1);
              driver.device_count();
              return 0;
          }) == 0);
    CHECK(probe.calls() == 2); // silent while armed: the kernel doesn't put it into a copy that was made writable
    driver.device_count();
    CHECK(probe.calls() == 3);
}

SCENARIO(uprobe_after_prepare) {
    CHECK(wire::prepare(on_touch));
    const std::size_t all = wire::entries();
    const Uprobe probe(driver, "cuDeviceGetCount");
    // Not prepared again, as when a C library forks: the child isn't armed, since the probe stands on a jump.
    CHECK(in_child([&] {
              CHECK(!wire::arm());
              CHECK(wire::state() == wire::State::unavailable);
              CHECK(std::strstr(wire::reason(), "changed by another tool") != nullptr);
              driver.device_count();
              driver.current_context();
              return touches().count.load();
          }) == 0);
    CHECK(wire::prepare(on_touch));
    CHECK(wire::entries() == all - 1);
    CHECK(in_child([&] {
              CHECK(wire::arm());
              driver.current_context();
              return touches().count.load();
          }) == 1);
    touches().count = 0;
    CHECK(in_child([&] {
              CHECK(wire::arm());
              driver.device_count();
              driver.current_context();
              driver.device_count();
              return touches().count.load();
          }) == 1);
    CHECK(probe.calls() == 2);
}

// Set while a child is armed: the kernel puts it over the jump, in the child's text. Its first instruction is then run
// from elsewhere, and execution goes on behind it; all functions of the driver API begin with one that is longer than
// the jump.
SCENARIO(uprobe_while_armed) {
    CHECK(wire::prepare(on_touch));
    const int expected = in_child([&] { return driver.device_count(); });
    int to_child[2];
    int to_parent[2];
    CHECK(pipe(to_child) == 0 && pipe(to_parent) == 0);
    const pid_t pid = checked_fork();
    char byte = 0;
    if (pid == 0) {
        CHECK(wire::arm());
        CHECK(write(to_parent[1], "", 1) == 1);
        CHECK(read(to_child[0], &byte, 1) == 1);
        CHECK(driver.device_count() == expected);
        driver.current_context();
        CHECK(touches().count == 1);
        CHECK(driver.device_count() == expected);
        leave(0);
    }
    CHECK(read(to_parent[0], &byte, 1) == 1);
    const Uprobe probe(driver, "cuDeviceGetCount");
    CHECK(write(to_child[1], "", 1) == 1);
    CHECK(wait_for(pid) == 0);
    CHECK(probe.calls() == 2);
}
