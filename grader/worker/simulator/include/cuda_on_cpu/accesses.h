// What the compiler's instrumentation reports of every access: races, strays, misaligned ones.
#pragma once
#pragma GCC system_header

#include <dlfcn.h>

#include <initializer_list>

#include "scheduler.h"
#include "traffic.h"

namespace cuda_on_cpu {

CUDA_ON_CPU_STATE void* sites[1 << site_bits];  // the code that accessed, by the site in a stamp

CUDA_ON_CPU_UNSEEN static inline unsigned site(void* code) {
    unsigned at = (reinterpret_cast<uintptr_t>(code) * 0x9E3779B97F4A7C15ull) >> (64 - site_bits);
    for (int tries = 0; tries < 64; ++tries, at = (at + 1) & site_mask) {
        if (sites[at] == code) return at;
        if (!sites[at] && at) return sites[at] = code, at;
    }
    return 0;
}

// The line of the submission that this code is from, or 0.
CUDA_ON_CPU_UNSEEN static int line_of(void* code) {
    Dl_info found;
    if (!code || !dladdr(code, &found) || !found.dli_fname) return 0;
    char text[4400];
    const size_t offset = static_cast<char*>(code) - static_cast<char*>(found.dli_fbase) - 1;
    snprintf(text, sizeof text, "addr2line -i -e '%s' 0x%zx 2>/dev/null", found.dli_fname, offset);
    FILE* output = popen(text, "r");
    if (!output) return 0;
    int line = 0;
    while (fgets(text, sizeof text, output)) {  // from the innermost inlined function to the outermost
        const char* number = strrchr(text, ':');
        if (!line && number && !strstr(text, "cuda_on_cpu/")) line = atoi(number + 1);
    }
    pclose(output);
    return line;
}

CUDA_ON_CPU_STATE uintptr_t host_stack = 0;  // of the thread that launches
CUDA_ON_CPU_STATE size_t host_stack_bytes = 0;

struct Text {
    char text[160];
};

CUDA_ON_CPU_UNSEEN static Text on_line(int line) {
    Text text = {""};
    if (line > 0) snprintf(text.text, sizeof text.text, " on line %d", line);
    return text;
}

CUDA_ON_CPU_UNSEEN static Text place_in(unsigned number, dim3 size) {
    Text text;
    if (size.y == 1 && size.z == 1) snprintf(text.text, sizeof text.text, "%u", number);
    else snprintf(text.text, sizeof text.text, "(%u, %u, %u)", number % size.x, number / size.x % size.y, number / size.x / size.y);
    return text;
}

// "thread 3 of block 0", or "(3, 0, 0)" where the launch has more than one dimension.
CUDA_ON_CPU_UNSEEN static Text thread_name(Stamp stamp) {
    Text text;
    snprintf(text.text, sizeof text.text, "thread %s of block %s", place_in(thread_of(stamp), blockDim).text,
             place_in(block_of(stamp) - 1, gridDim).text);
    return text;
}

// `updates`: the reading thread goes on to write what it has read, in the same line.
CUDA_ON_CPU_UNSEEN static void say_race(uintptr_t address, Stamp earlier, bool wrote, Stamp now, bool writes, bool updates = false) {
    char place[200];
    describe_place(place, sizeof place, address);
    const Region* region = region_at(address);
    const bool shared = region && (region->space == Space::shared || region->space == Space::dynamic);
    if (!shared && *errors.observed) return;
    const char* how = "Blocks run at the same time and in no order: use an atomic, or a second launch.";
    if (block_of(earlier) == block_of(now)) {
        const bool same = site_of(earlier) && site_of(earlier) == site_of(now);
        how = writes && wrote && same
                  ? "Both are in the same statement, so no barrier orders them: let one thread write, or use an atomic."
              : updates ? "Each thread reads, changes and writes it, and no barrier orders that: use an atomic, or a sum of each thread."
              : thread_of(earlier) / 32 != thread_of(now) / 32 ? "No `__syncthreads()` is between the two."
              : shared ? "No `__syncwarp()` or `__syncthreads()` is between the two, and the lanes of a warp need not run in step."
                       : "No `__syncwarp()`, `__syncthreads()` or atomic orders the two.";
    } else if (how_of(earlier) == How::plain && wrote && !writes && clocks.told_block == clocks.block && !clocks.fenced) {
        how = "An atomic alone does not order them: a `__threadfence()` is missing between the write and the atomic.";
    }
    const bool atomic = how_of(now) == How::atomic, was_atomic = how_of(earlier) == How::atomic;
    char text[600];
    snprintf(text, sizeof text, "Race: %s %s %s%s, and %s %s it%s. %s", thread_name(now).text,
             atomic ? "updates" : writes ? "writes" : "reads", place, on_line(line_of(sites[site_of(now)])).text,
             thread_name(earlier).text, was_atomic ? "updated" : wrote ? "wrote" : "read",
             on_line(line_of(sites[site_of(earlier)])).text, how);
    // In global memory it may be the effect of a wrong index, which the output tells better.
    if (shared) fail(cudaErrorLaunchFailure, true, "%s", text);
    else observe("%s", text);
}

// A write that may be a race is none if it does not change what is in memory, which shows after it, or if the thread soon
// restores it without a look: it stores 0 and then the same value as another. After a read that is a race, the thread's
// next access tells whether it is part of an update such as `sum += x`.
struct Pending {
    bool set, wrote, writes;
    uintptr_t address, word;
    unsigned size;
    Stamp earlier, now;
    unsigned char before[16];

    CUDA_ON_CPU_UNSEEN bool changed() const { return memcmp(before, reinterpret_cast<void*>(address), size); }
};
constexpr int most_overwritten = 32;
CUDA_ON_CPU_STATE Pending pending, overwritten[most_overwritten];
CUDA_ON_CPU_STATE int overwritten_count = 0;

// A plain read and an atomic by two threads, in no order: right in a loop around atomicCAS, so judged at the end.
CUDA_ON_CPU_STATE struct Doubt {
    uintptr_t address;
    Stamp earlier, now;
    bool wrote, writes;
} doubts[32];
CUDA_ON_CPU_STATE int doubt_count = 0;

CUDA_ON_CPU_UNSEEN static void settle(uintptr_t next, void* code) {
    if (!pending.set) return;
    pending.set = false;
    if (pending.writes) {
        if (!pending.changed()) return;
        if (overwritten_count < most_overwritten) overwritten[overwritten_count++] = pending;
        else say_race(pending.word, pending.earlier, pending.wrote, pending.now, true);
        return;
    }
    const bool same = next == pending.address && thread_of(pending.now) == clocks.thread && block_of(pending.now) == clocks.block;
    const int line = same ? line_of(code) : 0;
    const bool updates = line && line == line_of(sites[site_of(pending.now)]) && line == line_of(sites[site_of(pending.earlier)]);
    say_race(pending.word, pending.earlier, pending.wrote, pending.now, false, updates);
}

// The running thread ends, waits or lets others go on: what it wrote is what the others see.
CUDA_ON_CPU_UNSEEN static void settle() {
    settle(0, nullptr);
    for (int i = 0; i < overwritten_count; ++i) {
        const Pending& each = overwritten[i];
        if (each.changed()) say_race(each.word, each.earlier, each.wrote, each.now, true);
    }
    overwritten_count = 0;
    unsettled = false;
}

// The thread reads what it wrote over another's value, which it may find instead.
CUDA_ON_CPU_UNSEEN static void look_at_overwritten(uintptr_t address, size_t size) {
    for (int i = 0; i < overwritten_count; ++i) {
        const Pending& each = overwritten[i];
        if (address < each.address + each.size && each.address < address + size)
            return say_race(each.word, each.earlier, each.wrote, each.now, true);
    }
}

CUDA_ON_CPU_UNSEEN static void settle_launch() {
    settle();
    for (int i = 0; i < doubt_count && !errors.broken; ++i) {
        const Doubt& doubt = doubts[i];
        Page* page = page_at(doubt.address, clocks.launch);
        if (page && !bit(page->updated, doubt.address % page_bytes / 4))
            say_race(doubt.address, doubt.earlier, doubt.wrote, doubt.now, doubt.writes);
    }
    doubt_count = 0;
}

CUDA_ON_CPU_UNSEEN static void doubt(uintptr_t address, Stamp earlier, bool wrote, Stamp now, bool writes) {
    for (int i = 0; i < doubt_count; ++i)
        if (doubts[i].address == address) return;
    if (doubt_count < 32) doubts[doubt_count++] = {address, earlier, now, wrote, writes};
}

CUDA_ON_CPU_UNSEEN static bool flag_like(uintptr_t address) {  // not in shared memory: a volatile read may wait for a write
    const Region* region = region_at(address);
    return !region || (region->space != Space::shared && region->space != Space::dynamic);
}

// A cell of shared memory. What it begins with is whatever another block has left there.
CUDA_ON_CPU_UNSEEN static void look_at_shared(Cell& cell, uintptr_t address, bool reads, void* code) {
    for (Stamp* stamp : {&cell.write, &cell.atomic, cell.reads, cell.reads + 1})
        if (block_of(*stamp) != clocks.block) *stamp = 0;
    if (!reads || cell.write || cell.atomic || *errors.unset) return;
    char place[200], user[32] = "The kernel";
    describe_place(place, sizeof place, address);
    if (const int line = line_of(code); line > 0) snprintf(user, sizeof user, "Line %d", line);
    snprintf(errors.unset, sizeof errors.unset,
             "%s uses %s before any thread of the block has written it: shared memory begins with whatever was in it, here "
             "NaN. Write a 0 where there is no element.",
             user, place);
}

CUDA_ON_CPU_UNSEEN static void remember_read(Cell& cell, Stamp now) {
    for (Stamp& read : cell.reads) {
        if (!read || have_met(read)) {
            read = now;
            return;
        }
    }
    cell.reads[1] = now;
}

// Returns the earlier access that this one races with, or 0; `wrote` says what that was.
CUDA_ON_CPU_UNSEEN static Stamp compare(Cell& cell, uintptr_t address, Stamp now, bool writes, uint64_t* updated, bool& wrote) {
    const How how = how_of(now);
    Stamp found = 0;
    wrote = true;
    if (cell.write && !ordered(cell.write)) {
        const bool both = how_of(cell.write) == How::is_volatile && how != How::plain;
        if (!both || (how == How::is_volatile && (writes || !flag_like(address)))) found = cell.write;
    }
    if (how == How::plain && cell.atomic && !ordered(cell.atomic)) {
        if (writes && !found) found = cell.atomic;
        if (!writes) doubt(address, cell.atomic, true, now, false);
    }
    if (writes && !found) {
        for (Stamp read : cell.reads) {
            if (!read) continue;
            const How other = how_of(read);
            if (how == How::atomic && other == How::plain && block_of(read) == clocks.block && thread_of(read) == clocks.thread)
                set_bit(updated, address % page_bytes / 4);
            if (found || ordered(read)) continue;
            if (how == How::atomic && other == How::plain) doubt(address, read, false, now, true);
            else if (how == How::plain || (how == How::is_volatile && (other == How::plain || !flag_like(address))))
                found = read, wrote = false;
        }
    }
    if (!writes) remember_read(cell, now);
    else if (how == How::atomic) cell.atomic = now;
    else {
        cell.write = now;
        if (!found) cell.atomic = cell.reads[0] = cell.reads[1] = 0;
    }
    return found;
}

CUDA_ON_CPU_UNSEEN static bool is_usable(uintptr_t address, bool writes) {
    FILE* maps = fopen("/proc/self/maps", "r");
    if (!maps) return false;
    char line[4400], rights[8];
    uintptr_t begin, end;
    bool usable = false;
    while (!usable && fgets(line, sizeof line, maps))
        usable = sscanf(line, "%zx-%zx %7s", &begin, &end, rights) == 3 && address >= begin && address < end &&
                 rights[0] == 'r' && (!writes || rights[1] == 'w');
    fclose(maps);
    return usable;
}

CUDA_ON_CPU_UNSEEN static void stray(uintptr_t address, unsigned size, bool writes, void* code) {
    const Region* region = region_beside(address);
    // In the memory around tensors the output may tell it better, so the kernel goes on.
    const bool goes_on = region           ? region->space == Space::tensor
                         : *errors.observed ? is_mapped(address)
                                            : is_usable(address, writes);
    if (goes_on && *errors.observed) return;
    char text[240];
    const char* verb = writes ? "writes" : "reads";
    if (region && region->space == Space::dynamic) {
        snprintf(text, sizeof text,
                 "past its dynamic shared memory: the launch on line %d gives it %zu bytes, as the third value between <<< and >>>",
                 region->line, size_t(region->end - region->begin));
    } else if (region) {
        const bool before = address < region->begin;
        const size_t item = region->item ? region->item : 1;
        char declared[60] = "";
        if (region->line) snprintf(declared, sizeof declared, ", declared on line %d", region->line);
        else snprintf(declared, sizeof declared, ", which has %zu element%s", size_t(region->end - region->begin) / item,
                      size_t(region->end - region->begin) == item ? "" : "s");
        if (before) snprintf(text, sizeof text, "%zu bytes before the beginning of `%s`%s", size_t(region->begin - address), region->name, declared);
        else snprintf(text, sizeof text, "past the end of `%s`%s: element %zu", region->name, declared, size_t(address - region->begin) / item);
    } else if (address < page_bytes) {
        snprintf(text, sizeof text, "through a null pointer");
    } else {
        snprintf(text, sizeof text, "at 0x%zx, which is in no array that the kernel was given", size_t(address));
    }
    char sentence[600];
    snprintf(sentence, sizeof sentence, "Outside: %s %s %u %s%s, %s.", thread_name(clocks.now).text, verb, size,
             size == 1 ? "byte" : "bytes", on_line(line_of(code)).text, text);
    if (const char* what = strstr(errors.overflow, ": ")) {
        const size_t used = strlen(sentence);
        snprintf(sentence + used, sizeof sentence - used, " Before that, %s", what + 2);
    }
    if (goes_on) return observe("%s", sentence);
    fail(cudaErrorLaunchFailure, true, "%s", sentence);
    stop();
}

CUDA_ON_CPU_UNSEEN static void write_to_input(uintptr_t address, void* code) {
    char place[200];
    describe_place(place, sizeof place, address);
    fail(cudaErrorLaunchFailure, true, "Outside: %s writes %s%s, which is an input: only outputs may be written.",
         thread_name(clocks.now).text, place, on_line(line_of(code)).text);
    stop();
}

CUDA_ON_CPU_UNSEEN static void misaligned(uintptr_t address, size_t alignment, const char* type, const char* verb, int line) {
    char place[200];
    const Region* region = region_at(address);
    if (region) snprintf(place, sizeof place, "byte %zu of `%s`", size_t(address - region->begin), region->name);
    else if (region_beside(address) || is_usable(address, false)) snprintf(place, sizeof place, "the address 0x%zx", size_t(address));
    else {
        fail(cudaErrorLaunchFailure, true, "Outside: %s %s %s%s, at 0x%zx, which is in no array that the kernel was given.",
             thread_name(clocks.now).text, verb, type, on_line(line).text, size_t(address));
        stop();
    }
    fail(cudaErrorLaunchFailure, true,
         "Misaligned: %s %s %s at %s%s. A GPU can access it only where its address is a multiple of %zu.",
         thread_name(clocks.now).text, verb, type, place, on_line(line).text, alignment);
    stop();
}

CUDA_ON_CPU_STATE int launch_line = 0;  // of the launch that runs

// An access of the host. It may not use the GPU's memory. Of what both share, it may read what the GPU does not write.
CUDA_ON_CPU_UNSEEN static void access_of_host(uintptr_t address, bool writes, void* code) {
    if (address < of_gpu_begin || address >= of_gpu_end || errors.broken) return;
    const Region* region = region_at(address);
    if (!region || region->space == Space::shared || region->space == Space::dynamic) return;
    const bool both = is_of_both(*region);
    const int busy = writes ? region->busy : region->changed;
    if (both && !busy) return;
    const int line = line_of(code);
    char place[200];
    describe_place(place, sizeof place, address);
    const char* verb = writes ? "writes" : "reads";
    if (both)
        return fail(cudaErrorLaunchFailure, true,
                    "Unfinished: the host %s %s%s, but it does not wait for the GPU: what was started%s may still use that memory.",
                    verb, place, on_line(line).text, on_line(busy).text);
    const bool variable = is_variable(*region);
    fail(cudaErrorLaunchFailure, true, "Host: code of the host %s %s%s, which is %s.", verb, place, on_line(line).text,
         variable ? "a variable of the GPU: the host has another one of the same name"
                  : "in the GPU's memory. Only kernels can use it there");
}

// An access to a word that a launch on another stream has used, in no order.
CUDA_ON_CPU_UNSEEN static void access_beside(const Page* page, size_t word, uintptr_t address, How how, bool writes) {
    const bool wrote = bit(page->beside_wrote, word) || bit(page->beside_updated, word);
    const bool both_update = how == How::atomic && !bit(page->beside_wrote, word);
    if (both_update || !(wrote || (writes && bit(page->beside_read, word)))) return;
    const Region* region = region_at(address);
    if (*errors.observed || !region || region->space == Space::shared || region->space == Space::dynamic) return;
    char place[200];
    describe_place(place, sizeof place, address);
    observe("Race: the kernel launched on line %d %s %s, and the one launched on line %d %s it. They are on two streams, and neither "
            "waits for the other.", launch_line, writes ? "writes" : "reads", place, page->beside->line, wrote ? "writes" : "reads");
}

// One access of the running thread. Nothing has happened yet.
CUDA_ON_CPU_UNSEEN static void access(uintptr_t address, size_t size, How how, bool writes, void* code) {
    if (block.running < 0) return;  // the host
    const char* stack = fibers[block.running].stack;
    if (address - reinterpret_cast<uintptr_t>(stack) < stack_bytes || address - host_stack < host_stack_bytes) return;
    traffic.atomics += how == How::atomic;
    if (traffic.counts && region_at(address)) ++traffic.steps[clocks.thread];
    if (traffic.on && clocks.thread < lanes && how == How::plain) watch_access(address, size, writes, clocks.thread, code);
    settle(writes ? address : 0, code);
    if (!writes && overwritten_count) look_at_overwritten(address, size);
    if (errors.broken) stop();
    const Stamp now = clocks.now | Stamp(how) << how_at | site(code);
    const uintptr_t end = address + size;
    for (uintptr_t at = address; at < end;) {
        Page* page = page_at(at, clocks.launch);
        if (!page) return;
        bool of_block = false;  // shared memory: other blocks have their own
        if (page->checked) {
            Region* region = region_at(at);
            if (writes && region && region->read_only) return write_to_input(at, code);
            if (writes && region && is_of_both(*region)) region->busy = region->changed = launch_line;
            if (!region && !in_library(at) && (all_known || region_beside(at) || !is_mapped(at))) return stray(at, size, writes, code);
            if (!region && in_library(at)) {
                if (region_beside(at)) return stray(at, size, writes, code);
                return;  // the simulator's own, or the host's
            }
            if (region && region->end < at - at % 4 + 4 && region->end < end) return stray(region->end, size, writes, code);
            of_block = region && (region->space == Space::shared || region->space == Space::dynamic);
        }
        if (clocks.off) return;
        const size_t word = at % page_bytes / 4;
        const uintptr_t next = at - at % 4 + 4;
        const bool whole = at % 4 == 0 && end >= next;
        if (page->beside && whole) access_beside(page, word, at, how, writes);
        bool wrote = false;
        Stamp found = 0;
        if (whole && !bit(page->split, word)) {
            if (of_block) look_at_shared(page->words[word], at, !writes || how == How::atomic, code);
            found = compare(page->words[word], at, now, writes, page->updated, wrote);
            at = next;
        } else {
            Cell* cells = split_word(page, word);
            if (!cells) return;
            const uintptr_t first = at;
            for (; at < next && at < end; ++at) {
                if (of_block) look_at_shared(cells[at % 4], at, !writes, code);
                if (Stamp one = compare(cells[at % 4], first, now, writes, page->updated, wrote)) found = one;
            }
        }
        if (!found || pending.set) continue;
        if (how != How::atomic && size <= sizeof pending.before) {
            unsettled = true;
            pending = {true, wrote, writes, address, next - 4 < address ? address : next - 4, unsigned(size), found, now, {}};
            if (writes) memcpy(pending.before, reinterpret_cast<void*>(address), size);
        } else {
            say_race(next - 4 < address ? address : next - 4, found, wrote, now, writes);
            if (errors.broken) stop();
        }
    }
}

CUDA_ON_CPU_UNSEEN static void access_atomic(void* pointer, size_t size, void* code) {
    const auto address = reinterpret_cast<uintptr_t>(pointer);
    if (block.running < 0) return;
    if (address % size) misaligned(address, size, "an atomic", "uses", line_of(code));
    access(address, size, How::atomic, true, code);
    acquire(address);
    release(address);
    clocks.told_block = clocks.block;
}

CUDA_ON_CPU_UNSEEN static void access_volatile(void* pointer, size_t size, bool writes, void* code) {
    const auto address = reinterpret_cast<uintptr_t>(pointer);
    access(address, size, How::is_volatile, writes, code);
    if (block.running < 0) return;
    if (writes) release(address);
    else acquire(address);
}

}  // namespace cuda_on_cpu
