#include "core/user_frame.hpp"

#include <climits>
#include <cstring>
#include <unistd.h>

#include "core/cells.hpp"

namespace cfg {

namespace {

struct Roots {
    char standard_library[1024];
    char guard[1024];
    char launcher[1024];
};
Roots roots;

void set_root(char (&root)[1024], const char* folder) noexcept {
    std::size_t length = std::strlen(folder);
    while (length > 0 && folder[length - 1] == '/') {
        --length;
    }
    copy_text(root, sizeof root, folder, length < sizeof root ? length : 0);
}

// What follows the folder in a path below it, else null.
const char* below(const char* path, const char* folder) noexcept {
    const std::size_t length = std::strlen(folder);
    return length > 0 && std::strncmp(path, folder, length) == 0 && path[length] == '/' ? path + length + 1 : nullptr;
}

bool is_installed(const char* path) noexcept {
    return std::strstr(path, "/site-packages/") != nullptr || std::strstr(path, "/dist-packages/") != nullptr;
}

enum class Owner : int { user, package, standard_library, guard };

Owner owner_of(const char* path) noexcept {
    if (below(path, roots.guard) != nullptr) {
        return Owner::guard;
    }
    if (is_installed(path) || (roots.launcher[0] != '\0' && std::strcmp(path, roots.launcher) == 0)) {
        return Owner::package; // many installations keep it below the standard library
    }
    const bool frozen = std::strncmp(path, "<frozen ", 8) == 0;
    return frozen || below(path, roots.standard_library) != nullptr ? Owner::standard_library : Owner::user;
}

// A path may hold line feeds or terminal sequences; a report is read on a terminal, line by line.
void put_clean(Text& text, const char* string, std::size_t length) noexcept {
    for (std::size_t at = 0; at < length; ++at) {
        const auto byte = static_cast<unsigned char>(string[at]);
        const char shown = byte < 0x20 || byte == 0x7f ? '?' : string[at];
        text.put(&shown, 1);
    }
}

const char* next_character(const char* at) noexcept {
    while ((static_cast<unsigned char>(*at) & 0xC0U) == 0x80U) {
        ++at;
    }
    return at;
}

constexpr char kCut[] = "...";

void put_tail(Text& text, const char* string, std::size_t limit) noexcept {
    const std::size_t length = std::strlen(string);
    if (length > limit) {
        text.put(kCut);
        string = next_character(string + length - limit);
    }
    put_clean(text, string, std::strlen(string));
}

void put_head(Text& text, const char* string, std::size_t limit) noexcept {
    std::size_t length = std::strlen(string);
    const bool cut = length > limit;
    if (cut) {
        for (length = limit; length > 0 && (static_cast<unsigned char>(string[length]) & 0xC0U) == 0x80U; --length) {
        }
    }
    put_clean(text, string, length);
    if (cut) {
        text.put(kCut);
    }
}

// Behind the current folder's name, if the file lies below that.
const char* relative(const char* file) noexcept {
    char folder[PATH_MAX];
    if (file[0] != '/' || getcwd(folder, sizeof folder) == nullptr) {
        return file;
    }
    const char* const inside = below(file, folder);
    return inside != nullptr ? inside : file;
}

} // namespace

void set_code_roots(const char* standard_library, const char* guard, const char* launcher) noexcept {
    set_root(roots.standard_library, standard_library);
    set_root(roots.guard, guard);
    set_root(roots.launcher, launcher);
}

const PythonFrame* user_frame(const PythonStack& stack) noexcept {
    const PythonFrame* best = nullptr;
    Owner best_owner = Owner::guard;
    for (int at = 0; at < stack.count; ++at) {
        const Owner owner = owner_of(stack.frames[at].file);
        if (owner < best_owner) {
            best = &stack.frames[at];
            best_owner = owner;
        }
    }
    return best;
}

void put_place(Text& text, const PythonFrame& frame, std::size_t limit) noexcept {
    const char* const cell = cell_of(frame.file);
    if (cell != nullptr) {
        text.put("cell ").put(cell).put(", line ").decimal(frame.line);
        if (frame.function[0] != '<') { // IPython calls a cell's own level "<cell line: 2>" or "<module>"
            text.put(" in ");
            put_head(text, frame.function, limit / 3);
        }
        return;
    }
    const char* const file = relative(frame.file);
    constexpr std::size_t kAround = 24; // ":line in " and the dots
    const std::size_t function_limit = limit / 3;
    const std::size_t function_length = std::strlen(frame.function);
    const std::size_t file_limit =
        limit - kAround - (function_length < function_limit ? function_length : function_limit);
    put_tail(text, file, file_limit);
    if (frame.line > 0) {
        text.put(":").decimal(frame.line);
    }
    text.put(" in ");
    put_head(text, frame.function, function_limit);
}

void put_user_place(Text& text, const PythonStack& stack, std::size_t limit) noexcept {
    const PythonFrame* const frame = user_frame(stack);
    if (frame != nullptr) {
        put_place(text, *frame, limit);
    } else {
        text.put("unknown: ").put(stack.reason != nullptr ? stack.reason : "no Python frame on this thread");
    }
}

} // namespace cfg
