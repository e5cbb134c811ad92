// The core's pure functions for tests/native: text in, text out.
#include <cstring>
#include <string>

#include "core/cells.hpp"
#include "core/python_dump.hpp"
#include "core/python_stack.hpp"
#include "core/safe_output.hpp"
#include "core/stack_join.hpp"
#include "core/touch_report.hpp"
#include "core/user_frame.hpp"

namespace {

std::string answer;

const char* keep(std::string text) {
    answer = std::move(text);
    return answer.c_str();
}

// "file\tline\tfunction\n…", innermost first; "gap N" or "gap ?" where frames are left out, "end" if the outer end is
// known.
std::string shown(const cfg::PythonStack& stack) {
    std::string text;
    for (int at = 0; at < stack.count; ++at) {
        if (stack.gap_at > 0 && at == stack.gap_at) {
            text += "gap " + (stack.gap < 0 ? "?" : std::to_string(stack.gap)) + "\n";
        }
        const cfg::PythonFrame& frame = stack.frames[at];
        text += std::string(frame.file) + "\t" + std::to_string(frame.line) + "\t" + frame.function + "\n";
    }
    return text + (stack.complete ? "end\n" : "");
}

cfg::PythonStack parsed(const char* text) {
    cfg::PythonStack stack{};
    stack.complete = std::strstr(text, "end\n") != nullptr;
    const bool complete = stack.complete;
    for (std::string rest = text; !rest.empty();) {
        const std::size_t end = rest.find('\n');
        std::string line = rest.substr(0, end);
        rest.erase(0, end + 1);
        const std::size_t first = line.find('\t');
        const std::size_t second = line.find('\t', first + 1);
        if (first == std::string::npos) {
            if (line.rfind("gap ", 0) == 0) {
                stack.gap_at = stack.count;
                stack.gap = line[4] == '?' ? cfg::PythonStack::kUnknownGap : std::stoi(line.substr(4));
            }
            continue;
        }
        stack.add(line.data(), first, line.data() + second + 1, line.size() - second - 1,
                  std::stoi(line.substr(first + 1)));
    }
    stack.complete = complete;
    return stack;
}

} // namespace

extern "C" {

// What each line of a dump was taken for, then the stack.
const char* read_dump(const char* text) {
    cfg::PythonStack stack{};
    std::string kinds;
    for (std::string rest = text; !rest.empty();) {
        std::string line = rest.substr(0, rest.find('\n'));
        rest.erase(0, line.size() + 1);
        kinds += std::to_string(static_cast<int>(cfg::read_dump_line(stack, line.data(), line.size())));
    }
    return keep(kinds + "\n" + shown(stack));
}

const char* join(const char* cut, const char* later) {
    cfg::PythonStack stack = parsed(cut);
    join_outer_frames(stack, parsed(later));
    return keep(shown(stack));
}

const char* user_place(const char* stack, const char* standard_library, const char* guard, const char* launcher,
                       std::size_t limit) {
    char buffer[2048];
    cfg::set_code_roots(standard_library, guard, launcher);
    cfg::Text text(buffer, sizeof buffer);
    cfg::put_user_place(text, parsed(stack), limit);
    return keep(buffer);
}

// "file=name;file=name;"
const char* set_cells(const char* names) {
    std::string pairs = names;
    for (char& c : pairs) {
        c = c == '=' || c == ';' ? '\0' : c;
    }
    cfg::set_cells(pairs.data(), pairs.size());
    return "";
}

const char* touch_report(int pid, bool inherited, const char* used, const char* forked, const char* woken,
                         const char* advice) {
    static char report[cfg::kReportSize];
    const std::size_t length =
        cfg::format_touch_report(report, cfg::TouchFacts{pid, inherited, used, forked, woken, advice});
    return keep(std::string(report, length));
}
}
