// A product of float32 matrices that are too small for tiles of a library to keep the GPU busy.
//
// A block computes a tile of BM x BN; each of its WARPS takes every so many-th chunk of the terms,
// and the sums are added at the end, in order. FIRST_TRANSPOSED and SECOND_TRANSPOSED: whether memory
// holds the transposed matrix. VECTOR: elements of an access, 4 where all lengths and addresses allow.

constexpr int TERMS = 16;
constexpr int LANES = 32 * WARPS, LANES_DOWN = 4, LANES_ACROSS = 8;
constexpr int DOWN = BM / LANES_DOWN, ACROSS = BN / LANES_ACROSS;
constexpr int FIRST_STEP = BM + 4, SECOND_STEP = BN + 4;
constexpr int STAGED = TERMS * (FIRST_STEP + SECOND_STEP);
constexpr int SHARED = STAGED > BM * BN ? STAGED : BM * BN;

// A chunk of SIDE x TERMS elements in registers; the side is contiguous in memory, or the terms are.
template <int SIDE, bool SIDE_CONTIGUOUS>
struct Chunk {
    static constexpr int COUNT = SIDE * TERMS / 32 / VECTOR;
    static constexpr int VECTORS = (SIDE_CONTIGUOUS ? SIDE : TERMS) / VECTOR;
    Pack<float, VECTOR> values[COUNT];

    __device__ __forceinline__ void load(
        const float* __restrict__ x, int side, int term, int sides, int terms, int64 step, int lane) {
#pragma unroll
        for (int i = 0; i < COUNT; ++i) {
            const int outer = (i * 32 + lane) / VECTORS, inner = (i * 32 + lane) % VECTORS * VECTOR;
            const int s = side + (SIDE_CONTIGUOUS ? inner : outer);
            const int t = term + (SIDE_CONTIGUOUS ? outer : inner);
            if (s < sides && t < terms) {
                const int64 offset = SIDE_CONTIGUOUS ? t * step + s : s * step + t;
                values[i] = *reinterpret_cast<const Pack<float, VECTOR>*>(x + offset);
            } else {
#pragma unroll
                for (int j = 0; j < VECTOR; ++j) values[i].values[j] = 0.0f;
            }
        }
    }
    __device__ __forceinline__ void store(float* staged, int step, int lane) const {
#pragma unroll
        for (int i = 0; i < COUNT; ++i) {
            const int outer = (i * 32 + lane) / VECTORS, inner = (i * 32 + lane) % VECTORS * VECTOR;
#pragma unroll
            for (int j = 0; j < VECTOR; ++j) {
                const int s = SIDE_CONTIGUOUS ? inner + j : outer;
                const int t = SIDE_CONTIGUOUS ? outer : inner + j;
                staged[t * step + s] = values[i].values[j];
            }
        }
    }
};

extern "C" __global__ void __launch_bounds__(LANES) small_product(
    const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ out, int64 rows,
    int64 columns, int64 terms, int64 first_step, int64 second_step, int64 tiles_across) {
    __shared__ __align__(16) float shared[WARPS * SHARED];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int row = blockIdx.x / (int)tiles_across * BM, column = blockIdx.x % (int)tiles_across * BN;
    const int down = lane / LANES_ACROSS * DOWN, across = lane % LANES_ACROSS * ACROSS;
    float* first = shared + warp * STAGED;
    float* second = first + TERMS * FIRST_STEP;
    float sums[DOWN][ACROSS];
#pragma unroll
    for (int i = 0; i < DOWN; ++i)
#pragma unroll
        for (int j = 0; j < ACROSS; ++j) sums[i][j] = 0.0f;
    Chunk<BM, FIRST_TRANSPOSED> of_a;
    Chunk<BN, !SECOND_TRANSPOSED> of_b;
    const int step = WARPS * TERMS;
    int term = warp * TERMS;
    if (term < terms) {
        of_a.load(a, row, term, (int)rows, (int)terms, first_step, lane);
        of_b.load(b, column, term, (int)columns, (int)terms, second_step, lane);
    }
    for (; term < terms; term += step) {
        of_a.store(first, FIRST_STEP, lane);
        of_b.store(second, SECOND_STEP, lane);
        __syncwarp();
        if (term + step < terms) {
            of_a.load(a, row, term + step, (int)rows, (int)terms, first_step, lane);
            of_b.load(b, column, term + step, (int)columns, (int)terms, second_step, lane);
        }
#pragma unroll
        for (int t = 0; t < TERMS; ++t) {
            Pack<float, 4> x[DOWN / 4], y[ACROSS / 4];
#pragma unroll
            for (int i = 0; i < DOWN / 4; ++i)
                x[i] = *reinterpret_cast<const Pack<float, 4>*>(first + t * FIRST_STEP + down + 4 * i);
#pragma unroll
            for (int j = 0; j < ACROSS / 4; ++j)
                y[j] = *reinterpret_cast<const Pack<float, 4>*>(
                    second + t * SECOND_STEP + across + 4 * j);
#pragma unroll
            for (int i = 0; i < DOWN; ++i)
#pragma unroll
                for (int j = 0; j < ACROSS; ++j)
                    sums[i][j] += x[i / 4].values[i % 4] * y[j / 4].values[j % 4];
        }
        __syncwarp();
    }
    __syncthreads();
    float* own = shared + warp * BM * BN;
#pragma unroll
    for (int i = 0; i < DOWN; ++i)
#pragma unroll
        for (int j = 0; j < ACROSS; ++j) own[(down + i) * BN + across + j] = sums[i][j];
    __syncthreads();
    for (int i = threadIdx.x; i < BM * BN; i += LANES) {
        float total = shared[i];
#pragma unroll
        for (int other = 1; other < WARPS; ++other) total += shared[other * BM * BN + i];
        const int r = row + i / BN, c = column + i % BN;
        if (r < rows && c < columns) out[r * columns + c] = total;
    }
}
