// In CUDA's place: cooperative groups of a block and of lanes of a warp.
#pragma once
#pragma GCC system_header
#include "cuda_on_cpu.h"

namespace cooperative_groups {

namespace of_cpu {
static inline int thread_in_block() { return cuda_on_cpu::fibers[cuda_on_cpu::block.running].thread; }
static inline unsigned warp_lanes() { return cuda_on_cpu::lanes_of(thread_in_block() / 32); }
static inline int nth_lane(unsigned mask, unsigned n) {
    for (; n; --n) mask &= mask - 1;
    return __builtin_ctz(mask);
}
static inline unsigned rank_in(unsigned mask) { return __builtin_popcount(mask & ((1u << cuda_on_cpu::lane()) - 1)); }
static inline unsigned tile_of(unsigned mask, unsigned size) {  // the tile of this lane, of `size` lanes of the mask
    const unsigned first = rank_in(mask) / size * size;
    unsigned tile = 0;
    for (unsigned i = first; i < first + size && i < static_cast<unsigned>(__builtin_popcount(mask)); ++i) tile |= 1u << nth_lane(mask, i);
    return tile;
}

// Lanes of one warp that meet at each of their calls, which name a lane by its rank among them.
class Lanes {
public:
    explicit Lanes(unsigned mask) : mask(mask) {}
    void sync(int line = __builtin_LINE()) const { cuda_on_cpu::done_with(cuda_on_cpu::meet(mask, 0, "sync()", line, true)); }
    unsigned long long size() const { return __builtin_popcount(mask); }
    unsigned long long num_threads() const { return size(); }
    unsigned thread_rank() const { return rank_in(mask); }
    template <class T>
    T shfl(T value, int rank, int line = __builtin_LINE()) const { return moved(value, rank, "shfl()", line); }
    template <class T>
    T shfl_up(T value, unsigned delta, int line = __builtin_LINE()) const {
        return moved(value, delta > thread_rank() ? thread_rank() : thread_rank() - delta, "shfl_up()", line);
    }
    template <class T>
    T shfl_down(T value, unsigned delta, int line = __builtin_LINE()) const {
        const unsigned rank = thread_rank() + delta;
        return moved(value, rank < size() ? rank : thread_rank(), "shfl_down()", line);
    }
    template <class T>
    T shfl_xor(T value, unsigned bits, int line = __builtin_LINE()) const {
        const unsigned rank = thread_rank() ^ bits;
        return moved(value, rank < size() ? rank : thread_rank(), "shfl_xor()", line);
    }
    unsigned ballot(int predicate, int line = __builtin_LINE()) const {
        return ranks(cuda_on_cpu::ballot(mask, predicate, "ballot()", line));
    }
    int any(int predicate, int line = __builtin_LINE()) const { return cuda_on_cpu::ballot(mask, predicate, "any()", line) != 0; }
    int all(int predicate, int line = __builtin_LINE()) const { return cuda_on_cpu::ballot(mask, !predicate, "all()", line) == 0; }
    template <class T>
    unsigned match_any(T value, int line = __builtin_LINE()) const {
        return ranks(cuda_on_cpu::match(mask, value, "match_any()", line));
    }
    template <class T>
    unsigned match_all(T value, int& same, int line = __builtin_LINE()) const {
        const unsigned alike = ranks(cuda_on_cpu::match(mask, value, "match_all()", line));
        same = static_cast<unsigned>(__builtin_popcount(alike)) == size();
        return same ? alike : 0;
    }
    unsigned lane_mask() const { return mask; }

protected:
    unsigned mask;
    unsigned ranks(unsigned of_lanes) const {
        unsigned found = 0;
        for (unsigned i = 0; i < size(); ++i) found |= (of_lanes >> nth_lane(mask, i) & 1) << i;
        return found;
    }
    template <class T>
    T moved(const T& value, int rank, const char* call, int line) const {
        T all[32];
        cuda_on_cpu::gather(mask, value, all, call, line);
        return all[nth_lane(mask, static_cast<unsigned>(rank) % static_cast<unsigned>(size()))];
    }
};
}  // namespace of_cpu

class coalesced_group : public of_cpu::Lanes {
public:
    using of_cpu::Lanes::Lanes;
    unsigned long long meta_group_size() const { return 1; }
    unsigned long long meta_group_rank() const { return 0; }
};

class thread_block {
public:
    static void sync(int line = __builtin_LINE()) { cuda_on_cpu::barrier(0, "sync()", line); }
    static unsigned size() { return blockDim.x * blockDim.y * blockDim.z; }
    static unsigned num_threads() { return size(); }
    static unsigned thread_rank() { return of_cpu::thread_in_block(); }
    static dim3 group_index() { return dim3(blockIdx); }
    static dim3 thread_index() { return dim3(threadIdx); }
    static dim3 group_dim() { return blockDim; }
    static dim3 dim_threads() { return blockDim; }
};

class grid_group {
public:
    static unsigned long long num_blocks() { return 1ull * gridDim.x * gridDim.y * gridDim.z; }
    static unsigned long long block_rank() { return blockIdx.x + 1ull * gridDim.x * (blockIdx.y + 1ull * gridDim.y * blockIdx.z); }
    static unsigned long long num_threads() { return num_blocks() * thread_block::size(); }
    static unsigned long long size() { return num_threads(); }
    static unsigned long long thread_rank() { return block_rank() * thread_block::size() + thread_block::thread_rank(); }
    static dim3 block_index() { return dim3(blockIdx); }
    static dim3 dim_blocks() { return gridDim; }
    static dim3 group_dim() { return gridDim; }
    static bool is_valid() { return true; }
    static void sync(int line = __builtin_LINE()) {
        if (num_blocks() > 1) cuda_on_cpu::lacks("barrier of a whole grid", line);
        cuda_on_cpu::barrier(0, "sync()", line);
    }
};

template <unsigned Size, class Parent = void>
class thread_block_tile : public of_cpu::Lanes {
    static_assert(Size <= 32, "The simulator has no tiles of more than 32 threads; on a GPU it will be judged; this says nothing about your work.");

public:
    template <class Group>
    explicit thread_block_tile(unsigned of_parent, const Group& parent)
        : Lanes(of_cpu::tile_of(of_parent, Size)), tiles((parent.size() + Size - 1) / Size), tile(parent.thread_rank() / Size) {}
    template <class Other>
    thread_block_tile(const thread_block_tile<Size, Other>& same)
        : Lanes(same.lane_mask()), tiles(same.meta_group_size()), tile(same.meta_group_rank()) {}
    static constexpr unsigned size() { return Size; }
    static constexpr unsigned num_threads() { return Size; }
    unsigned long long meta_group_size() const { return tiles; }
    unsigned long long meta_group_rank() const { return tile; }

private:
    unsigned long long tiles, tile;
};

// A group whose kind is known at run time only.
class thread_group {
public:
    thread_group(const thread_block&) : block(true), of(0) {}
    thread_group(const of_cpu::Lanes& group) : block(false), of(group.lane_mask()) {}
    void sync(int line = __builtin_LINE()) const { block ? thread_block::sync(line) : of.sync(line); }
    unsigned long long size() const { return block ? thread_block::size() : of.size(); }
    unsigned long long num_threads() const { return size(); }
    unsigned long long thread_rank() const { return block ? thread_block::thread_rank() : of.thread_rank(); }
    unsigned lane_mask() const { return block ? of_cpu::warp_lanes() : of.lane_mask(); }

private:
    bool block;
    of_cpu::Lanes of;
};

static inline thread_block this_thread_block() { return {}; }
static inline grid_group this_grid() { return {}; }
static inline coalesced_group coalesced_threads(int line = __builtin_LINE()) { return coalesced_group(__activemask(line)); }

template <unsigned Size>
static inline thread_block_tile<Size, thread_block> tiled_partition(const thread_block& parent) {
    return thread_block_tile<Size, thread_block>(of_cpu::warp_lanes(), parent);
}
template <unsigned Size, class Parent>
static inline thread_block_tile<Size, Parent> tiled_partition(const Parent& parent) {
    return thread_block_tile<Size, Parent>(parent.lane_mask(), parent);
}
static inline thread_group tiled_partition(const thread_group& parent, unsigned size) {
    return thread_group(of_cpu::Lanes(of_cpu::tile_of(parent.lane_mask(), size)));
}
template <class Group>
static inline coalesced_group binary_partition(const Group& group, bool predicate, int line = __builtin_LINE()) {
    const unsigned mask = group.lane_mask(), yes = cuda_on_cpu::ballot(mask, predicate, "binary_partition()", line);
    return coalesced_group(predicate ? yes : mask & ~yes);
}
template <class Group, class Label>
static inline coalesced_group labeled_partition(const Group& group, Label label, int line = __builtin_LINE()) {
    return coalesced_group(cuda_on_cpu::match(group.lane_mask(), label, "labeled_partition()", line));
}

template <class Group>
static inline void sync(const Group& group, int line = __builtin_LINE()) { group.sync(line); }
template <class Group>
static inline auto thread_rank(const Group& group) { return group.thread_rank(); }
template <class Group>
static inline auto group_size(const Group& group) { return group.size(); }
template <class Group, class Call, class... Arguments>
static inline void invoke_one(const Group& group, Call&& call, Arguments&&... arguments) {
    if (group.thread_rank() == 0) call(arguments...);
}

}  // namespace cooperative_groups
