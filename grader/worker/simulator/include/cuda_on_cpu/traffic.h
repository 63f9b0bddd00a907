// How a warp's accesses share memory transactions: sectors of global memory, banks of shared memory.
//
// One warp of each launch is watched. The threads of a warp run one after another here, so that the k-th access at a place
// in the code is taken as one request of the warp, if every lane makes it. What is found is a remark, not a failure.
#pragma once
#pragma GCC system_header

#include <stdarg.h>
#include <stdio.h>

#include "shadow.h"

namespace cuda_on_cpu {

constexpr int watched_places = 64, watched_turns = 4, lanes = 32, most_warps = 32;
constexpr int long_loop = 16;  // accesses of a lane in one place
constexpr int sector_bytes = 32, most_sectors = 24, banks = 32, most_in_a_bank = 8;
constexpr int most_pages_of_a_block = 64;  // that one block alone may use without a remark: 256 KiB

struct Place {  // in the code
    void* code;
    unsigned size;
    bool writes, shared, is_odd;
    unsigned char turns[lanes];
    uintptr_t addresses[watched_turns][lanes];
};
CUDA_ON_CPU_STATE struct Traffic {
    bool on = false;  // the watched warp runs
    int count = 0;
    Place places[watched_places];
    void* told[watched_places];  // places that were found once
    int told_count = 0;
    char text[2000] = "";  // one remark per line: the line of the code, a space, a sentence
    bool counts = false;  // accesses and launches are listed, too: see cuda_on_cpu_counted
    bool plans = false;   // launches are listed and do not run
    unsigned long launches = 0, atomics = 0;
    unsigned steps[most_warps * lanes];  // accesses of each thread of the block
    unsigned long most = 0, total = 0, alone = 0;  // of the busiest threads: see end_of_block
    const char* kernel = "";  // that ran last, with its template arguments: GCC's __PRETTY_FUNCTION__
    char counted[8000] = "";
} traffic;

CUDA_ON_CPU_UNSEEN static void watch_access(uintptr_t address, unsigned size, bool writes, int lane, void* code) {
    int at = 0;
    while (at < traffic.count && traffic.places[at].code != code) ++at;
    if (at == watched_places) return;
    Place& place = traffic.places[at];
    if (at == traffic.count) {
        const Region* region = region_at(address);
        // Of the simulator, for example what a warp's lanes exchange; or constant memory, which has a cache without sectors.
        if (!region || region->space == Space::constant) return;
        ++traffic.count;
        const bool shared = region->space == Space::shared || region->space == Space::dynamic;
        place.code = code, place.size = size, place.writes = writes, place.shared = shared, place.is_odd = false;
        memset(place.turns, 0, sizeof place.turns);
    }
    place.is_odd |= place.size != size;
    unsigned char& turns = place.turns[lane];
    if (turns < watched_turns) place.addresses[turns][lane] = address;
    if (turns < 255) ++turns;
}

CUDA_ON_CPU_UNSEEN static int sectors_of(const uintptr_t* addresses, unsigned size) {
    uintptr_t seen[2 * lanes];
    int count = 0;
    for (int lane = 0; lane < lanes; ++lane) {
        for (uintptr_t at = addresses[lane] / sector_bytes; at <= (addresses[lane] + size - 1) / sector_bytes; ++at) {
            int i = 0;
            while (i < count && seen[i] != at) ++i;
            if (i == count && count < 2 * lanes) seen[count++] = at;
        }
    }
    return count;
}

// The largest number of different words in one bank. Lanes with 8 or 16 bytes take turns: 16 or 8 lanes at once.
CUDA_ON_CPU_UNSEEN static int conflicts_of(const uintptr_t* addresses, unsigned size) {
    const int together = size > 4 ? lanes * 4 / int(size) : lanes;
    int most = 1;
    for (int first = 0; first < lanes; first += together) {
        uintptr_t words[banks][lanes];
        int count[banks] = {};
        for (int lane = first; lane < first + together; ++lane) {
            const uintptr_t word = addresses[lane] / 4;
            int& in_bank = count[word % banks];
            int i = 0;
            while (i < in_bank && words[word % banks][i] != word) ++i;
            if (i == in_bank) words[word % banks][in_bank++] = word;
            if (in_bank > most) most = in_bank;
        }
    }
    return most;
}

__attribute__((format(printf, 2, 3))) CUDA_ON_CPU_UNSEEN static void remark(int line, const char* format, ...) {
    char sentence[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    const size_t length = strlen(traffic.text), room = sizeof traffic.text - length;
    const int added = snprintf(traffic.text + length, room, "%d %s\n", line, sentence);
    if (size_t(added) >= room) traffic.text[length] = 0;  // there is no room for it
}

CUDA_ON_CPU_UNSEEN static int line_of(void* code);

__attribute__((format(printf, 1, 2))) CUDA_ON_CPU_UNSEEN static void list(const char* format, ...) {
    const size_t length = strlen(traffic.counted), room = sizeof traffic.counted - length;
    va_list arguments;
    va_start(arguments, format);
    const int added = vsnprintf(traffic.counted + length, room, format, arguments);
    va_end(arguments);
    if (size_t(added) >= room) traffic.counted[length] = 0;
}

CUDA_ON_CPU_UNSEEN static int units_of(const Place& place, int turn) {
    return place.shared ? conflicts_of(place.addresses[turn], place.size) : sectors_of(place.addresses[turn], place.size);
}

// Counts the accesses of the block's busiest thread, and how many more they are than those of any thread in other warps.
CUDA_ON_CPU_UNSEEN static void end_of_block(int threads) {
    unsigned long busiest = 0, second = 0;
    for (int first = 0; first < threads; first += lanes) {
        unsigned long of_warp = 0;
        for (int at = first; at < threads && at < first + lanes; ++at)
            if (traffic.steps[at] > of_warp) of_warp = traffic.steps[at];
        if (of_warp > busiest) second = busiest, busiest = of_warp;
        else if (of_warp > second) second = of_warp;
    }
    if (busiest > traffic.most) traffic.most = busiest;
    traffic.total += busiest;
    if (threads > lanes) traffic.alone += busiest - second;
    memset(traffic.steps, 0, sizeof traffic.steps);
}

// Judges what the watched warp has done; call it at the end of its block.
CUDA_ON_CPU_UNSEEN static void judge_traffic() {
    for (int at = 0; at < traffic.count; ++at) {
        const Place& place = traffic.places[at];
        bool whole = !place.is_odd && place.size;
        for (int lane = 1; lane < lanes; ++lane) whole &= place.turns[lane] == place.turns[0];
        if (whole && traffic.counts) {
            int units = 0, turns = 0;
            while (turns < place.turns[0] && turns < watched_turns) units += units_of(place, turns++);
            list("access %d %s %s %d %d %u %d\n", line_of(place.code), place.writes ? "store" : "load",
                 place.shared ? "shared" : "global", units, turns, place.size, place.turns[0]);
        }
        if (!whole && traffic.counts) {
            unsigned made = 0;
            int turns = 0;
            for (int lane = 0; lane < lanes; ++lane) {
                made |= unsigned(place.turns[lane] != 0) << lane;
                if (place.turns[lane] > turns) turns = place.turns[lane];
            }
            if (turns >= long_loop) list("partly %d %u %d\n", line_of(place.code), made, turns);
        }
        whole &= traffic.told_count < watched_places;
        for (int i = 0; i < traffic.told_count; ++i) whole &= traffic.told[i] != place.code;
        if (!whole) continue;
        int least = 1000;
        for (int turn = 0; turn < place.turns[0] && turn < watched_turns; ++turn) {
            const int found = units_of(place, turn);
            if (found < least) least = found;
        }
        const int enough = int(place.size);  // 32 lanes in sectors of 32 bytes
        if (place.shared ? least < most_in_a_bank : least < most_sectors || least < 3 * enough) continue;
        traffic.told[traffic.told_count++] = place.code;
        const char* what = place.writes ? "store" : "load";
        if (place.shared) {
            char text[200];
            describe_place(text, sizeof text, place.addresses[0][0]);
            remark(line_of(place.code), "%d lanes of each warp's %s meet in one bank of shared memory, at `%s` for example: they take turns. "
                   "Pad each row by one element.", least, what, *text == '`' ? strtok(text, "`") : text);
        } else {
            remark(line_of(place.code), "Each warp's %s touches %d sectors of 32 bytes; %d would do. Let neighbouring threads use "
                   "neighbouring elements.", what, least, enough);
        }
    }
    traffic.count = 0;
}

}  // namespace cuda_on_cpu
