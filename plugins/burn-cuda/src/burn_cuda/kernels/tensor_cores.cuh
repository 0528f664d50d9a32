// Products on tensor cores for T of float16 or bfloat16, and their tiles in shared memory. GAP: elements
// between the rows of a tile, so that eight rows lie in different banks.

#define GAP 8
#define WARPS (THREADS / 32)
#define LOG2E 1.4426950408889634f
#define WEIGHT_EXPONENT (WeightExponent<T>::value)

// The power of two by which weights, which are at most 1, are scaled where small ones would lose bits.
template <class N>
struct WeightExponent {
    static constexpr float value = 0.0f;
};
template <>
struct WeightExponent<float16> {
    static constexpr float value = 15.0f;
};

#ifdef BURN_EMULATED
static uint32 exchanged_words[32 * WARPS][6];
static const void* exchanged_addresses[32 * WARPS];
__device__ inline float exp2_fast(float x) { return __builtin_exp2f(x); }
__device__ inline uint32 make_pair(T low, T high) { return (uint32)low.bits | (uint32)high.bits << 16; }
__device__ inline uint32 convert_pair(float low, float high) {
    return make_pair(convert<T>(low), convert<T>(high));
}
__device__ inline void multiply(float sums[4], const uint32 a[4], const uint32 b[2]) {
    const int first = threadIdx.x & ~31, lane = threadIdx.x & 31;
    for (int j = 0; j < 4; ++j) exchanged_words[threadIdx.x][j] = a[j];
    for (int j = 0; j < 2; ++j) exchanged_words[threadIdx.x][4 + j] = b[j];
    __syncwarp();
    for (int j = 0; j < 4; ++j) {
        const int row = lane / 4 + j / 2 * 8, column = lane % 4 * 2 + j % 2;
        for (int k = 0; k < 16; ++k) {
            const uint32 left = exchanged_words[first + row % 8 * 4 + k % 8 / 2][row / 8 + k / 8 * 2];
            const uint32 right = exchanged_words[first + column * 4 + k % 8 / 2][4 + k / 8];
            const unsigned short x = (unsigned short)(left >> k % 2 * 16);
            const unsigned short y = (unsigned short)(right >> k % 2 * 16);
            sums[j] += load(T{x}) * load(T{y});
        }
    }
    __syncwarp();
}
template <bool transposed>
__device__ inline void load_matrices(uint32 words[4], const T* address) {
    const int first = threadIdx.x & ~31, lane = threadIdx.x & 31;
    exchanged_addresses[threadIdx.x] = address;
    __syncwarp();
    for (int j = 0; j < 4; ++j) {
        const T* const* rows = (const T* const*)exchanged_addresses + first + j * 8;
        const int k = lane % 4 * 2, n = lane / 4;
        words[j] = transposed ? make_pair(rows[k][n], rows[k + 1][n]) : make_pair(rows[n][k], rows[n][k + 1]);
    }
    __syncwarp();
}
__device__ inline void copy_async(T* target, const T* source, bool exists) {
    for (int j = 0; j < 8; ++j) target[j] = exists ? source[j] : T{0};
}
__device__ inline void wait_for_copies() {}
#else
__device__ __forceinline__ float exp2_fast(float x) {
    float result;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
    return result;
}
__device__ __forceinline__ uint32 make_pair(T low, T high) {
    return (uint32)low.bits | (uint32)high.bits << 16;
}
template <class N>
struct Instructions;
template <>
struct Instructions<float16> {
    __device__ __forceinline__ static void multiply(
        float sums[4], const uint32 a[4], const uint32 b[2]) {
        asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, "
            "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
            : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    }
    __device__ __forceinline__ static uint32 convert_pair(float low, float high) {
        uint32 result;
        asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(result) : "f"(high), "f"(low));
        return result;
    }
};
template <>
struct Instructions<bfloat16> {
    __device__ __forceinline__ static void multiply(
        float sums[4], const uint32 a[4], const uint32 b[2]) {
        asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, "
            "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
            : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    }
    __device__ __forceinline__ static uint32 convert_pair(float low, float high) {
        uint32 result;
        asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(result) : "f"(high), "f"(low));
        return result;
    }
};
__device__ __forceinline__ void multiply(float sums[4], const uint32 a[4], const uint32 b[2]) {
    Instructions<T>::multiply(sums, a, b);
}
__device__ __forceinline__ uint32 convert_pair(float low, float high) {
    return Instructions<T>::convert_pair(low, high);
}
__device__ __forceinline__ uint32 shared_address(const void* address) {
    return (uint32)__cvta_generic_to_shared(address);
}
// Loads four matrices of 8 by 8: each lane passes the address of a row, lanes 0 to 7 of the first one.
template <bool transposed>
__device__ __forceinline__ void load_matrices(uint32 words[4], const T* address) {
    if (transposed)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
            : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
            : "r"(shared_address(address)) : "memory");
    else
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
            : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
            : "r"(shared_address(address)) : "memory");
}
// Copies 16 bytes to shared memory asynchronously; writes zeros, and loads nothing, where not `exists`.
__device__ __forceinline__ void copy_async(T* target, const T* source, bool exists) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
        :: "r"(shared_address(target)), "l"(source), "r"(exists ? 16 : 0) : "memory");
}
__device__ __forceinline__ void wait_for_copies() {
    asm volatile("cp.async.wait_all;" ::: "memory");
}
#endif


// The two numbers of type T in a word; and two numbers as a word and a word of their remainders.
__device__ __forceinline__ float low_of(uint32 pair) { return load(T{(unsigned short)pair}); }
__device__ __forceinline__ float high_of(uint32 pair) {
    return load(T{(unsigned short)(pair >> 16)});
}
__device__ __forceinline__ void split_pair(float x, float y, uint32& pair, uint32& remainder) {
    pair = convert_pair(x, y);
    remainder = convert_pair(x - low_of(pair), y - high_of(pair));
}

// Products of one left operand with 16 columns for each of COUNT loads, from `first` on, of ALL.
template <int COUNT, int ALL>
__device__ __forceinline__ void multiply_several(
    float (*sums)[4], int first, const uint32 left[4], const uint32 (*words)[4]) {
#pragma unroll
    for (int i = 0; i < COUNT; ++i) {
        if (first + i < ALL) {
            multiply(sums[2 * (first + i)], left, words[i]);
            multiply(sums[2 * (first + i) + 1], left, words[i] + 2);
        }
    }
}

// Two adjacent numbers of a row of a matrix; zeros beyond its end.
__device__ __forceinline__ bool is_paired(const T* source, int64 stride, int64 width) {
    return (((uint64)source / sizeof(T) | stride | width) & 1) == 0;
}
__device__ __forceinline__ uint32 load_pair(
    const T* source, int64 stride, int64 row, int64 column, int64 rows, int64 width, bool paired) {
    const T* address = source + row * stride + column;
    const bool first = row < rows && column < width, second = first && column + 1 < width;
    if (paired) return first ? *reinterpret_cast<const uint32*>(address) : 0;
    return make_pair(first ? address[0] : T{0}, second ? address[1] : T{0});
}
// A lane's part of 16 rows of a matrix, as the left operand of products.
template <int WIDE>
__device__ __forceinline__ void load_parts(
    uint32 parts[WIDE / 16][4], const T* source, int64 stride, int64 row, int64 rows, int64 width,
    bool paired) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int k = 0; k < WIDE / 16; ++k)
#pragma unroll
        for (int j = 0; j < 4; ++j)
            parts[k][j] = load_pair(source, stride, row + j % 2 * 8,
                k * 16 + lane % 4 * 2 + j / 2 * 8, rows, width, paired);
}
template <int WIDE>
__device__ __forceinline__ void load_left(
    uint32 parts[WIDE / 16][4], const T* source, int64 stride, int64 row, int64 rows, int64 width) {
    if (is_paired(source, stride, width))
        load_parts<WIDE>(parts, source, stride, row, rows, width, true);
    else
        load_parts<WIDE>(parts, source, stride, row, rows, width, false);
}
__device__ __forceinline__ void store_pair(
    T* target, int64 row, int64 column, int64 width, float x, float y) {
    T* address = target + row * width + column;
    if (column + 1 < width && ((uint64)address & 3) == 0) {
        *reinterpret_cast<uint32*>(address) = convert_pair(x, y);
    } else {
        if (column < width) address[0] = convert<T>(x);
        if (column + 1 < width) address[1] = convert<T>(y);
    }
}

// Copies rows of a matrix from global to shared memory, with zeros beyond its ends.
template <int ROWS, int WIDE>
__device__ __forceinline__ void copy_rows(
    T (*target)[WIDE + GAP], const T* source, int64 stride, int64 rows, int64 width, bool aligned) {
    const unsigned available = rows < 0 ? 0 : rows < ROWS ? (unsigned)rows : ROWS;
    const unsigned wide = (unsigned)width;
    if (aligned) {
        const unsigned pieces = WIDE / 8;
        if (THREADS % pieces == 0) {
            const unsigned first = threadIdx.x / pieces, column = threadIdx.x % pieces * 8;
            const unsigned stop = column < wide ? available : 0;
            const T* address = source + first * stride + column;
#pragma unroll
            for (unsigned start = 0; start < ROWS; start += THREADS / pieces) {
                const unsigned row = start + first;
                if (ROWS % (THREADS / pieces) == 0 || row < ROWS)
                    copy_async(&target[row][column], address, row < stop);
                address += THREADS / pieces * stride;
            }
        } else {
#pragma unroll
            for (unsigned start = 0; start < ROWS * pieces; start += THREADS) {
                const unsigned i = start + threadIdx.x, row = i / pieces, column = i % pieces * 8;
                if (i < ROWS * pieces)
                    copy_async(&target[row][column], source + row * stride + column,
                        row < available && column < wide);
            }
        }
    } else {
#pragma unroll 1
        for (unsigned i = threadIdx.x; i < ROWS * WIDE; i += THREADS) {
            const unsigned row = i / WIDE, column = i % WIDE;
            target[row][column] =
                row < available && column < wide ? source[row * stride + column] : T{0};
        }
    }
}

__device__ __forceinline__ bool is_aligned(const T* address, int64 stride, int64 width) {
    return (((uint64)address & 15) | (stride & 7) | (width & 7)) == 0;
}
