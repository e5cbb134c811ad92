// Symbol tables that don't hold together. They are laid out here byte by byte, behind them a page that can't be read.
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <elf.h>
#include <link.h>
#include <random>
#include <sys/mman.h>
#include <unistd.h>

#include "core/tripwire_entries.hpp"
#include "harness.hpp"

using namespace harness;

namespace {
constexpr std::size_t kSize = 4096;
constexpr std::uint32_t kBuckets = 2;
constexpr std::uint32_t kSymbols = 4; // the first is the empty one

struct Tables {
    ElfW(Dyn) dynamic[8];
    std::uint32_t hash[2 + kBuckets + kSymbols];
    struct {
        std::uint32_t buckets, first, filter_words, shift;
        ElfW(Addr) filter;
        std::uint32_t bucket[kBuckets];
        std::uint32_t chain[kSymbols - 1];
    } gnu;
    ElfW(Sym) symbols[kSymbols];
    char strings[64];
    alignas(16) unsigned char code[4][32];
};

class FakeImage {
  public:
    FakeImage() {
        auto* const pages = static_cast<unsigned char*>(
            mmap(nullptr, 2 * kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        CHECK(pages != MAP_FAILED && mprotect(pages + kSize, kSize, PROT_NONE) == 0);
        base_ = reinterpret_cast<std::uintptr_t>(pages);
        // At the very end, so that reading too far is noticed at once.
        tables = reinterpret_cast<Tables*>(pages + kSize - sizeof(Tables));
        headers_[0].p_type = PT_LOAD;
        headers_[0].p_flags = PF_R | PF_X;
        headers_[0].p_filesz = headers_[0].p_memsz = kSize;
        headers_[1].p_type = PT_DYNAMIC;
        headers_[1].p_vaddr = kSize - sizeof(Tables);
        headers_[1].p_memsz = sizeof tables->dynamic;
        lay_out();
    }

    void lay_out() {
        std::memset(static_cast<void*>(tables), 0, sizeof *tables);
        std::memset(tables->code, 0x90, sizeof tables->code);
        std::memcpy(tables->strings, "\0libcuda.so.1\0cuOne\0cuTwo\0cuThree", 34);
        const auto at = [&](const void* part) { return reinterpret_cast<ElfW(Addr)>(part); };
        const ElfW(Dyn) dynamic[8] = {{DT_SONAME, {1}},
                                      {DT_STRTAB, {at(tables->strings)}},
                                      {DT_STRSZ, {sizeof tables->strings}},
                                      {DT_SYMTAB, {at(tables->symbols)}},
                                      {DT_HASH, {at(tables->hash)}},
                                      {DT_GNU_HASH, {at(&tables->gnu)}},
                                      {DT_NULL, {0}},
                                      {DT_NULL, {0}}};
        std::memcpy(tables->dynamic, dynamic, sizeof dynamic);
        tables->hash[0] = kBuckets;
        tables->hash[1] = kSymbols;
        tables->gnu = {kBuckets, 1, 1, 0, 0, {1, 2}, {1, 0, 1}};
        constexpr ElfW(Word) names[kSymbols] = {0, 14, 20, 26};
        for (std::uint32_t i = 1; i < kSymbols; ++i) {
            tables->symbols[i].st_name = names[i];
            tables->symbols[i].st_info = (STB_GLOBAL << 4U) | STT_FUNC;
            tables->symbols[i].st_shndx = 1;
            tables->symbols[i].st_size = 32;
            tables->symbols[i].st_value = at(tables->code[i]) - base_;
        }
    }

    // How many entries are found; -1 if the tables are refused.
    int entries() const {
        const wire::Library library{base_, "", headers_, 2};
        wire::Image image;
        if (!wire::list_entries(library, image)) {
            return -1;
        }
        std::free(image.entries);
        return static_cast<int>(image.count);
    }

    void without(ElfW(Sxword) tag) {
        for (ElfW(Dyn) & entry : tables->dynamic) {
            if (entry.d_tag == tag) {
                entry.d_tag = DT_DEBUG;
            }
        }
    }

    Tables* tables;

  private:
    std::uintptr_t base_ = 0;
    ElfW(Phdr) headers_[2] {};
};
} // namespace

SCENARIO(broken_tables) {
    FakeImage image;
    CHECK(image.entries() == 3);
    image.without(DT_HASH);
    CHECK(image.entries() == 3);
    image.without(DT_GNU_HASH);
    CHECK(image.entries() == -1);

    const auto broken = [&](bool gnu, auto change) {
        image.lay_out();
        if (gnu) {
            image.without(DT_HASH);
        }
        change(*image.tables);
        return image.entries();
    };
    CHECK(broken(false, [](Tables& tables) { tables.hash[1] = 0; }) == -1);
    CHECK(broken(false, [](Tables& tables) { tables.hash[1] = 0xFFFFFFFF; }) == -1);
    CHECK(broken(false, [](Tables& tables) { tables.dynamic[4].d_un.d_ptr += 1U << 20U; }) == -1);
    CHECK(broken(false, [](Tables& tables) { tables.dynamic[3].d_un.d_ptr += 1U << 20U; }) == -1);
    CHECK(broken(false, [](Tables& tables) { tables.dynamic[1].d_un.d_ptr += 1U << 20U; }) == -1);
    CHECK(broken(false, [](Tables& tables) { tables.dynamic[2].d_un.d_val = 1U << 20U; }) == -1);
    CHECK(broken(false, [](Tables& tables) { tables.symbols[2].st_name = 0x7FFFFFFF; }) == 2);
    CHECK(broken(false, [](Tables& tables) { tables.symbols[2].st_value = 1U << 20U; }) == 2);
    CHECK(broken(false, [](Tables& tables) { tables.symbols[2].st_size = 0; }) == 2);
    CHECK(broken(false, [](Tables& tables) { tables.symbols[2].st_shndx = SHN_UNDEF; }) == 2);
    CHECK(broken(false, [](Tables& tables) { tables.symbols[2].st_info = (STB_GLOBAL << 4U) | STT_OBJECT; }) == 2);
    CHECK(broken(false, [](Tables& tables) { tables.symbols[2].st_info = (STB_LOCAL << 4U) | STT_FUNC; }) == 2);
    CHECK(broken(false, [](Tables& tables) { std::memset(tables.strings, 'c', sizeof tables.strings); }) == -1);
    CHECK(broken(true, [](Tables& tables) { tables.gnu.buckets = 0; }) == -1);
    CHECK(broken(true, [](Tables& tables) { tables.gnu.buckets = 0xFFFFFFFF; }) == -1);
    CHECK(broken(true, [](Tables& tables) { tables.gnu.filter_words = 0xFFFFFFFF; }) == -1);
    CHECK(broken(true, [](Tables& tables) { tables.gnu.bucket[1] = 0x7FFFFFFF; }) == -1);
    CHECK(broken(true, [](Tables& tables) { tables.gnu.first = 0x7FFFFFFF; }) == -1);
}

// Any bytes at all: whatever is found, nothing outside is read.
SCENARIO(shuffled_tables) {
    FakeImage image;
    std::mt19937 random(20240229);
    for (int round = 0; round < 20000; ++round) {
        image.lay_out();
        if (round % 2 == 1) {
            image.without(DT_HASH);
        }
        auto* const bytes = reinterpret_cast<unsigned char*>(image.tables);
        for (int change = 0; change < 1 + round % 7; ++change) {
            bytes[random() % offsetof(Tables, code)] = static_cast<unsigned char>(random());
        }
        image.entries();
    }
}
