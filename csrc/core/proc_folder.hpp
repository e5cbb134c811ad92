// The numbers that name the entries of a /proc folder: descriptors, threads. No malloc, one descriptor while it lasts.
#pragma once

namespace cfg {

using NumberVisitor = void (*)(int number, void* data);

// 0, or the error number of opening or reading the folder. The descriptor it reads with is never visited, and is in
// *opened, if that is asked for, as long as the visits last.
int visit_numbers(const char* folder, NumberVisitor visitor, void* data, int* opened = nullptr) noexcept;

} // namespace cfg
