// CUB's reductions and scans of a block and of a warp. As CUB's do, they leave undefined what CUB does not define: a
// reduction's result is that of the first thread alone, and a block's storage needs a barrier before its next use.
#pragma once
#pragma GCC system_header
#include "../cuda_on_cpu.h"

namespace cub {

enum BlockReduceAlgorithm {
    BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY,
    BLOCK_REDUCE_RAKING,
    BLOCK_REDUCE_WARP_REDUCTIONS,
    BLOCK_REDUCE_WARP_REDUCTIONS_NONDETERMINISTIC,
};
enum BlockScanAlgorithm { BLOCK_SCAN_RAKING, BLOCK_SCAN_RAKING_MEMOIZE, BLOCK_SCAN_WARP_SCANS };

#define CUDA_ON_CPU_OPERATION(name, expression) \
    struct name { \
        template <class T> \
        T operator()(const T& a, const T& b) const { return expression; } \
    };
CUDA_ON_CPU_OPERATION(Sum, a + b)
CUDA_ON_CPU_OPERATION(Max, a < b ? b : a)
CUDA_ON_CPU_OPERATION(Min, b < a ? b : a)
#undef CUDA_ON_CPU_OPERATION

namespace of_cpu {
struct Line {  // of the caller; no int, because a count of valid items is one
    int at;
};

template <class T>
static T undefined() {
    T value;
    cuda_on_cpu::forget(&value, sizeof value);
    return value;
}

template <class T, int count, class Operation>
static T folded(const T (&items)[count], Operation operation) {
    T result = items[0];
    for (int i = 1; i < count; ++i) result = operation(result, items[i]);
    return result;
}

// What a scan of one item per thread gives its thread: of the items before it, and of all.
template <class T>
struct Scanned {
    bool first;
    T before, total;
};

template <class T, class Operation>
static Scanned<T> scanned(const T* items, int count, int at, Operation operation) {
    Scanned<T> result{at == 0, undefined<T>(), items[0]};
    for (int i = 1; i <= count; ++i) {
        if (i == at) result.before = result.total;
        if (i < count) result.total = operation(result.total, items[i]);
    }
    return result;
}

// The calls that scans of a block and of a warp share: `Scan::all` says what comes before a thread's item.
template <class T, class Scan>
struct Scans {
    template <class Operation>
    void InclusiveScan(T in, T& out, Operation operation, T& total, Line line = Line{__builtin_LINE()}) {
        const Scanned<T> found = self().all(in, operation, "InclusiveScan()", line);
        out = found.first ? in : operation(found.before, in), total = found.total;
    }
    template <class Operation>
    void InclusiveScan(T in, T& out, Operation operation, Line line = Line{__builtin_LINE()}) {
        T total;
        InclusiveScan(in, out, operation, total, line);
    }
    template <class Operation>
    void ExclusiveScan(T in, T& out, T initial, Operation operation, T& total, Line line = Line{__builtin_LINE()}) {
        const Scanned<T> found = self().all(in, operation, "ExclusiveScan()", line);
        out = found.first ? initial : operation(initial, found.before), total = found.total;
    }
    template <class Operation>
    void ExclusiveScan(T in, T& out, T initial, Operation operation, Line line = Line{__builtin_LINE()}) {
        T total;
        ExclusiveScan(in, out, initial, operation, total, line);
    }
    void InclusiveSum(T in, T& out, Line line = Line{__builtin_LINE()}) { InclusiveScan(in, out, Sum(), line); }
    void InclusiveSum(T in, T& out, T& total, Line line = Line{__builtin_LINE()}) { InclusiveScan(in, out, Sum(), total, line); }
    void ExclusiveSum(T in, T& out, Line line = Line{__builtin_LINE()}) { ExclusiveScan(in, out, T{}, Sum(), line); }
    void ExclusiveSum(T in, T& out, T& total, Line line = Line{__builtin_LINE()}) { ExclusiveScan(in, out, T{}, Sum(), total, line); }

private:
    Scan& self() { return static_cast<Scan&>(*this); }
};

template <class T, int threads>
struct Block {  // shared by the threads of a block
    struct TempStorage {
        alignas(T) unsigned char bytes[threads * sizeof(T)];
        T* items() { return reinterpret_cast<T*>(bytes); }
    };
    TempStorage* storage;

    T* gathered(const T& value, const char* call, Line line) const {
        memcpy(storage->items() + rank(), &value, sizeof value);
        cuda_on_cpu::barrier(0, call, line.at);
        return storage->items();
    }
    static int rank() { return cuda_on_cpu::fibers[cuda_on_cpu::block.running].thread; }
    static TempStorage& own() {
        static TempStorage shared;
        return shared;
    }
};

template <class T, int width>
struct Warp {
    struct TempStorage {
        unsigned char unused;
    };
    static constexpr unsigned all = width == 32 ? 0xffffffffu : (1u << (width & 31)) - 1;
    static int rank() { return cuda_on_cpu::lane() % width; }
    static int gathered(const T& value, T* items, const char* call, Line line) {  // the number of lanes that there are
        T lanes[32];
        const int first = cuda_on_cpu::lane() / width * width;
        const unsigned there = cuda_on_cpu::gather(all << first, value, lanes, call, line.at);
        for (int i = 0; i < width; ++i) memcpy(items + i, lanes + first + i, sizeof(T));
        return __builtin_popcount(there);
    }
};
}  // namespace of_cpu

template <class T, int X, BlockReduceAlgorithm = BLOCK_REDUCE_WARP_REDUCTIONS, int Y = 1, int Z = 1, int = 0>
class BlockReduce {
    using Shared = of_cpu::Block<T, X * Y * Z>;
    Shared shared;

public:
    using TempStorage = typename Shared::TempStorage;
    BlockReduce() : shared{&Shared::own()} {}
    BlockReduce(TempStorage& storage) : shared{&storage} {}
    template <class Operation>
    T Reduce(T value, Operation operation, int valid, of_cpu::Line line = of_cpu::Line{__builtin_LINE()}) {
        const T* items = shared.gathered(value, "Reduce()", line);
        if (shared.rank()) return of_cpu::undefined<T>();
        T result = items[0];
        for (int i = 1; i < valid; ++i) result = operation(result, items[i]);
        return result;
    }
    template <class Operation>
    T Reduce(T value, Operation operation, of_cpu::Line line = of_cpu::Line{__builtin_LINE()}) { return Reduce(value, operation, X * Y * Z, line); }
    template <int count, class Operation>
    T Reduce(T (&items)[count], Operation operation, of_cpu::Line line = of_cpu::Line{__builtin_LINE()}) {
        return Reduce(of_cpu::folded(items, operation), operation, line);
    }
    T Sum(T value, of_cpu::Line line = of_cpu::Line{__builtin_LINE()}) { return Reduce(value, cub::Sum(), line); }
    T Sum(T value, int valid, of_cpu::Line line = of_cpu::Line{__builtin_LINE()}) { return Reduce(value, cub::Sum(), valid, line); }
    template <int count>
    T Sum(T (&items)[count], of_cpu::Line line = of_cpu::Line{__builtin_LINE()}) { return Reduce(items, cub::Sum(), line); }
};

template <class T, int width = 32, int = 0>
class WarpReduce {
    using Lanes = of_cpu::Warp<T, width>;

public:
    using TempStorage = typename Lanes::TempStorage;
    WarpReduce(TempStorage&) {}
    template <class Operation>
    T Reduce(T value, Operation operation, int valid, of_cpu::Line line = of_cpu::Line{__builtin_LINE()}) {
        T items[width];
        const int there = Lanes::gathered(value, items, "Reduce()", line);
        if (Lanes::rank()) return of_cpu::undefined<T>();
        T result = items[0];
        for (int i = 1; i < valid && i < there; ++i) result = operation(result, items[i]);
        return result;
    }
    template <class Operation>
    T Reduce(T value, Operation operation, of_cpu::Line line = of_cpu::Line{__builtin_LINE()}) { return Reduce(value, operation, width, line); }
    T Sum(T value, of_cpu::Line line = of_cpu::Line{__builtin_LINE()}) { return Reduce(value, cub::Sum(), line); }
    T Sum(T value, int valid, of_cpu::Line line = of_cpu::Line{__builtin_LINE()}) { return Reduce(value, cub::Sum(), valid, line); }
};

template <class T, int X, BlockScanAlgorithm A = BLOCK_SCAN_RAKING, int Y = 1, int Z = 1, int V = 0>
class BlockScan : public of_cpu::Scans<T, BlockScan<T, X, A, Y, Z, V>> {
    using Shared = of_cpu::Block<T, X * Y * Z>;
    friend of_cpu::Scans<T, BlockScan<T, X, A, Y, Z, V>>;
    Shared shared;
    template <class Operation>
    of_cpu::Scanned<T> all(const T& value, Operation operation, const char* call, of_cpu::Line line) {
        return of_cpu::scanned(shared.gathered(value, call, line), X * Y * Z, shared.rank(), operation);
    }

public:
    using TempStorage = typename Shared::TempStorage;
    BlockScan() : shared{&Shared::own()} {}
    BlockScan(TempStorage& storage) : shared{&storage} {}
};

template <class T, int width = 32, int V = 0>
class WarpScan : public of_cpu::Scans<T, WarpScan<T, width, V>> {
    using Lanes = of_cpu::Warp<T, width>;
    friend of_cpu::Scans<T, WarpScan<T, width, V>>;
    template <class Operation>
    of_cpu::Scanned<T> all(const T& value, Operation operation, const char* call, of_cpu::Line line) {
        T items[width];
        const int there = Lanes::gathered(value, items, call, line);
        return of_cpu::scanned(items, there, Lanes::rank(), operation);
    }

public:
    using TempStorage = typename Lanes::TempStorage;
    WarpScan(TempStorage&) {}
};

}  // namespace cub
