#include "core/tripwire_registry.hpp"

#include <cstdlib>
#include <dlfcn.h>
#include <sys/mman.h>

#include "core/tripwire_arch.hpp"
#include "core/tripwire_copy.hpp"
#include "core/tripwire_dynamic.hpp"
#include "core/tripwire_entries.hpp"
#include "core/tripwire_reason.hpp"
#include "core/tripwire_swap.hpp"

namespace cfg::tripwire {

namespace {
Image g_images[kMaxImages];
std::atomic<std::size_t> g_published{0};

LoaderChanges g_looked_at;   // what was loaded when the last look was taken
bool g_some_refused = false; // libraries that are not among the images

bool is_known(const Library& library) noexcept {
    bool known = false;
    for_each_image([&](const Image& image) { known = known || image.base == library.base; });
    return known;
}

bool hold(const Library& library, Image& image) noexcept {
    void* const handle = dlopen(library.path, RTLD_LAZY | RTLD_NOLOAD);
    if (handle == nullptr) {
        set_reason("libcuda can't be held by its name", 0);
        return false;
    }
    link_map* map = nullptr;
    if (dlinfo(handle, RTLD_DI_LINKMAP, static_cast<void*>(&map)) != 0 || map->l_addr != library.base) {
        dlclose(handle);
        set_reason("libcuda was unloaded, or its name belongs to another library", 0);
        return false;
    }
    image.base = library.base;
    image.handle = handle;
    image.path = map->l_name; // the caller's string is only good while the library is loaded
    return true;
}

bool build(Image& image) noexcept {
    unsigned char* const copies = build_copies(image);
    image.refused = copies == nullptr || !exchange_copies(image, copies);
    return !image.refused;
}

void give_up(Image& image) noexcept {
    if (image.thunks != nullptr) {
        munmap(image.thunks, image.thunks_length);
        image.thunks = nullptr;
    }
    std::free(image.entries);
    image.entries = nullptr;
    image.count = 0;
    if (image.handle != nullptr) {
        dlclose(image.handle);
        image.handle = nullptr;
    }
}

bool add(const Library& library) noexcept {
    const std::size_t slot = g_published.load(std::memory_order_relaxed);
    if (slot == kMaxImages) {
        set_reason("more libcudas are loaded than can be watched", 0);
        return false;
    }
    if (slot == 0) {
        arch::measure();
    }
    Image& image = g_images[slot];
    if (!hold(library, image) || !list_entries(library, image) || !build_thunks(image) || !build(image)) {
        give_up(image);
        return false;
    }
    g_published.store(slot + 1, std::memory_order_release);
    return true;
}

void look_for_new_ones() noexcept {
    // One more than can be watched, so that the surplus is noticed.
    Library found[kMaxImages + 1];
    const std::size_t count = find_libcudas(found, kMaxImages + 1);
    g_some_refused = false;
    for (std::size_t i = 0; i < count; ++i) {
        if (!is_known(found[i]) && !add(found[i])) {
            g_some_refused = true;
        }
    }
}

bool refresh(Image& image) noexcept {
    if (is_armed(image)) {
        return true;
    }
    if (image.copies.load(std::memory_order_acquire) != nullptr) {
        if (copies_are_current(image)) {
            return true;
        }
        exchange_copies(image, nullptr);
    }
    return !image.refused && build(image);
}
} // namespace

Image* images() noexcept {
    return g_images;
}

std::size_t image_count() noexcept {
    return g_published.load(std::memory_order_acquire);
}

Readiness make_ready() noexcept {
    const LoaderChanges now = loader_changes();
    if (!(now == g_looked_at)) {
        forget_refusals();
        look_for_new_ones();
        g_looked_at = now;
    }
    bool ready = !g_some_refused;
    for_each_image([&](Image& image) { ready = refresh(image) && ready; });
    if (!ready) {
        return Readiness::refused;
    }
    return image_count() == 0 ? Readiness::none_loaded : Readiness::ready;
}

void forget_refusals() noexcept {
    g_looked_at = LoaderChanges{};
    for_each_image([](Image& image) { image.refused = false; });
}

} // namespace cfg::tripwire
