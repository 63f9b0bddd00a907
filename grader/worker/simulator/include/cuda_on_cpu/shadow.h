// What is remembered of each word of memory: who wrote and read it last, in this launch.
#pragma once
#pragma GCC system_header

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <initializer_list>

#include "regions.h"

namespace cuda_on_cpu {

enum class How : unsigned { plain, is_volatile, atomic };

// Who accessed a word, when, how and from where: block 22 bits, clock 18, thread 10, how 2, site 12. 0: nobody.
using Stamp = uint64_t;
constexpr int site_bits = 12, how_at = 12, thread_at = 14, clock_at = 24, block_at = 42;
constexpr Stamp site_mask = (1u << site_bits) - 1;
CUDA_ON_CPU_UNSEEN static inline unsigned site_of(Stamp stamp) { return stamp & site_mask; }
CUDA_ON_CPU_UNSEEN static inline How how_of(Stamp stamp) { return static_cast<How>(stamp >> how_at & 3); }
CUDA_ON_CPU_UNSEEN static inline int thread_of(Stamp stamp) { return stamp >> thread_at & 1023; }
CUDA_ON_CPU_UNSEEN static inline unsigned clock_of(Stamp stamp) { return stamp >> clock_at & 0x3ffff; }
CUDA_ON_CPU_UNSEEN static inline unsigned block_of(Stamp stamp) { return stamp >> block_at; }

struct Cell {
    Stamp write, atomic, reads[2];  // the last plain write and atomic; a reader, and one of another thread
};

constexpr size_t page_bytes = 4096, page_words = page_bytes / 4;

struct Launched {  // the `count`-th work on its stream
    unsigned long launch, count;
    int stream, line;
};
CUDA_ON_CPU_UNSEEN static const Launched* launched_beside(unsigned long launch);  // null: it is over. See joins.h.

struct Page {
    uintptr_t number;
    unsigned long launch;
    bool checked;                 // some of its addresses may belong to no buffer, or there is no memory
    uint64_t split[page_words / 64];    // words that are accessed in parts: see `bytes`
    uint64_t updated[page_words / 64];  // words that a thread read and then updated atomically
    const Launched* beside;             // the last launch here, if that may run at the same time, and its accesses
    uint64_t beside_wrote[page_words / 64], beside_updated[page_words / 64], beside_read[page_words / 64];
    Cell words[page_words];
    Cell* bytes;
};

constexpr int max_pages = 16384;  // half a gigabyte; after that, accesses are not compared
CUDA_ON_CPU_STATE Page* pages[2 * max_pages];  // a hash table
CUDA_ON_CPU_STATE int page_count = 0, pages_of_launch = 0;
CUDA_ON_CPU_STATE Page* recent[64];

CUDA_ON_CPU_UNSEEN static void forget_pages() {
    for (Page*& page : pages) {
        if (!page) continue;
        free(page->bytes);
        free(page);
        page = nullptr;
    }
    memset(recent, 0, sizeof recent);
    page_count = 0;
}

CUDA_ON_CPU_UNSEEN static inline bool bit(const uint64_t* bits, size_t at) { return bits[at / 64] >> at % 64 & 1; }
CUDA_ON_CPU_UNSEEN static inline void set_bit(uint64_t* bits, size_t at) { bits[at / 64] |= 1ull << at % 64; }

extern "C" __attribute__((visibility("hidden"))) char __ehdr_start, _end;  // by the linker: this library in memory
CUDA_ON_CPU_UNSEEN static bool in_library(uintptr_t address) {
    return address >= reinterpret_cast<uintptr_t>(&__ehdr_start) && address < reinterpret_cast<uintptr_t>(&_end);
}

CUDA_ON_CPU_STATE bool all_known = false;  // every pointer that the launch passes is into a known region: other addresses are wrong

CUDA_ON_CPU_UNSEEN static bool needs_check(uintptr_t begin) {
    const uintptr_t end = begin + page_bytes;
    if (in_library(begin) || in_library(end - 1)) return true;
    for (int i = 0; i < region_count; ++i) {
        const Region& region = regions[i];
        if (begin >= region.begin && end <= region.end) return region.read_only || is_of_both(region);
        if (begin < region.end + region.after && end > region.begin - region.before) return true;
    }
    return all_known;
}

// Keeps what the page's last launch did, if it may run at the same time as the one that runs.
CUDA_ON_CPU_UNSEEN static void look_beside(Page* page) {
    page->beside = launched_beside(page->launch);
    if (!page->beside) return;
    for (uint64_t* bits : {page->beside_wrote, page->beside_updated, page->beside_read}) memset(bits, 0, sizeof page->beside_wrote);
    for (size_t i = 0; i < page_words; ++i) {
        if (bit(page->split, i)) continue;
        const Cell& cell = page->words[i];
        if (cell.write) set_bit(page->beside_wrote, i);
        if (cell.atomic) set_bit(page->beside_updated, i);
        if (cell.reads[0]) set_bit(page->beside_read, i);
    }
}

// Whether there is memory at all: a kernel may read any number as a pointer.
CUDA_ON_CPU_UNSEEN static bool is_mapped(uintptr_t address) {
    unsigned char resident;
    return !mincore(reinterpret_cast<void*>(address / page_bytes * page_bytes), 1, &resident) || errno != ENOMEM;
}

// Null: there are too many pages.
CUDA_ON_CPU_UNSEEN static Page* page_at(uintptr_t address, unsigned long launch) {
    const uintptr_t number = address / page_bytes;
    Page*& last = recent[number % 64];
    Page* page = last;
    if (!page || page->number != number) {
        size_t at = number * 0x9E3779B97F4A7C15ull >> 40;
        for (;; ++at) {
            Page*& found = pages[at % (2 * max_pages)];
            if (!found) {
                if (page_count == max_pages) return nullptr;
                found = static_cast<Page*>(calloc(1, sizeof(Page)));
                if (!found) return nullptr;
                found->number = number;
                ++page_count;
            }
            if (found->number == number) {
                page = last = found;
                break;
            }
        }
    }
    if (page->launch != launch) {
        if (page->launch) {
            look_beside(page);
            memset(page->split, 0, sizeof page->split);
            memset(page->updated, 0, sizeof page->updated);
            memset(page->words, 0, sizeof page->words);
        }
        page->launch = launch;
        const Region* region = region_beside(address);
        pages_of_launch += region && region->space != Space::shared && region->space != Space::dynamic;
        page->checked = needs_check(number * page_bytes) || !is_mapped(address);
    }
    return page;
}

// The cells of one byte of a word that is accessed in parts.
CUDA_ON_CPU_UNSEEN static Cell* split_word(Page* page, size_t word) {
    if (!page->bytes) page->bytes = static_cast<Cell*>(calloc(page_bytes, sizeof(Cell)));
    if (!page->bytes) return nullptr;
    Cell* cells = page->bytes + 4 * word;
    if (!bit(page->split, word)) {
        set_bit(page->split, word);
        for (int i = 0; i < 4; ++i) cells[i] = page->words[word];
    }
    return cells;
}

}  // namespace cuda_on_cpu
