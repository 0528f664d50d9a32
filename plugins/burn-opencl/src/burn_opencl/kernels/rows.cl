// Ops on rows of n elements (row_helpers.cl). Where a row fits, each lane of a GPU keeps its
// VECTORS_PER_LANE vectors of it in registers.

typedef struct {
    long rows, n, type, offset_1, offset_2, offset_3, epsilon, has_gamma, has_beta;
} Parameters;
#ifdef SPECIALIZED_TYPE
#define TYPE SPECIALIZED_TYPE
#else
#define TYPE ((int)parameters.type)
#endif

#if IS_CPU
#define ROW ITEM
#define EACH(k) for (long k = 0; k < n; k += VECTOR_WIDTH)
#define LOADED(p, index, k, fill) load_vector(p, (index) + k, n - k, TYPE, fill)
#define STORED(p, index, k, v) store_vector(p, (index) + k, n - k, TYPE, v)
#define STORED_WIDE(p, index, k, v) store_vector(p, (index) + k, n - k, WIDE_TYPE, v)
#else
#define ROW (GROUP * (GROUP_SIZE / LANES) + LANE / LANES)
#define LOADED(p, index, k, fill) READ_V(p, (index) + k, TYPE)
#define STORED(p, index, k, v) WRITE_V(p, (index) + k, TYPE, v)
#define STORED_WIDE(p, index, k, v) WRITE_V(p, (index) + k, WIDE_TYPE, v)
#ifdef VECTORS_PER_LANE
#define EACH(k)                                       \
    UNROLL for (int v = 0; v < VECTORS_PER_LANE; ++v) \
        for (long k = ((long)v * LANES + ROW_LANE) * V_WIDTH; k < n; k = n)
#else
#define EACH(k) for (long k = ROW_LANE * V_WIDTH; k < n; k += LANES * V_WIDTH)
#endif
#endif

// Elements that are read more than once: from memory each time, or from registers. KEEP and KEPT are for
// intermediate results, which are in the memory of the result meanwhile, or in registers.
#ifdef VECTORS_PER_LANE
#define HOLD(held, p, index) V held[VECTORS_PER_LANE]; EACH(k) held[v] = LOADED(p, index, k, (C)0);
#define HELD(held, p, index, k, fill) held[v]
#define KEEP(held, k, x) held[v] = x
#define KEPT(held, k) held[v]
#else
#define HOLD(held, p, index)
#define HELD(held, p, index, k, fill) LOADED(p, index, k, fill)
#define KEEP(held, k, x) STORED(out, out_row, k, x)
#define KEPT(held, k) LOADED(out, out_row, k, (C)0)
#endif

// Lanes without a row take part in barriers, with no elements.
#define BEGIN                                                                      \
    SHARED const long row = ROW, x_row = parameters.offset_1 + row * parameters.n; \
    const long n = row < parameters.rows ? parameters.n : 0, out_row = row * n;

// fmax drops NaN, but the exponential propagates it.
#ifdef HAS_softmax
KERNEL(GROUP_SIZE)
void softmax(const Parameters parameters, GLOBAL const void* x, GLOBAL void* out) {
    BEGIN
    HOLD(own_x, x, x_row)
    V largest = -(C)INFINITY;
    EACH(k) largest = fmax(largest, HELD(own_x, x, x_row, k, -(C)INFINITY));
    const C row_largest = ACROSS_LANES(row_max, largest);
    V sum = (C)0;
    EACH(k) {
        const V exponential = exp(HELD(own_x, x, x_row, k, -(C)INFINITY) - row_largest);
        sum += exponential;
        KEEP(own_x, k, exponential);
    }
    const C factor = (C)1 / ACROSS_LANES(row_sum, sum);
    EACH(k) STORED(out, out_row, k, KEPT(own_x, k) * factor);
}
#endif
#ifdef HAS_log_softmax
KERNEL(GROUP_SIZE)
void log_softmax(const Parameters parameters, GLOBAL const void* x, GLOBAL void* out) {
    BEGIN
    HOLD(own_x, x, x_row)
    V largest = -(C)INFINITY;
    EACH(k) largest = fmax(largest, HELD(own_x, x, x_row, k, -(C)INFINITY));
    const C row_largest = ACROSS_LANES(row_max, largest);
    V sum = (C)0;
    EACH(k) sum += exp(HELD(own_x, x, x_row, k, -(C)INFINITY) - row_largest);
    const C shift = log(ACROSS_LANES(row_sum, sum));
    EACH(k) STORED(out, out_row, k, HELD(own_x, x, x_row, k, (C)0) - row_largest - shift);
}
#endif
#ifdef HAS_softmax_grad
KERNEL(GROUP_SIZE) void softmax_grad(
    const Parameters parameters, GLOBAL const void* output, GLOBAL const void* g,
    GLOBAL void* out) {
    BEGIN
    const long g_row = parameters.offset_2 + row * n;
    HOLD(own_output, output, x_row)
    HOLD(own_g, g, g_row)
    V sum = (C)0;
    EACH(k) sum += HELD(own_output, output, x_row, k, (C)0) * HELD(own_g, g, g_row, k, (C)0);
    const C all = ACROSS_LANES(row_sum, sum);
    EACH(k) {
        const V difference = HELD(own_g, g, g_row, k, (C)0) - all;
        STORED(out, out_row, k, HELD(own_output, output, x_row, k, (C)0) * difference);
    }
}
#endif
#ifdef HAS_log_softmax_grad
KERNEL(GROUP_SIZE) void log_softmax_grad(
    const Parameters parameters, GLOBAL const void* output, GLOBAL const void* g,
    GLOBAL void* out) {
    BEGIN
    const long g_row = parameters.offset_2 + row * n;
    HOLD(own_output, output, x_row)
    HOLD(own_g, g, g_row)
    V sum = (C)0;
    EACH(k) sum += HELD(own_g, g, g_row, k, (C)0);
    const C all = ACROSS_LANES(row_sum, sum);
    EACH(k) {
        const V exponential = exp(HELD(own_output, output, x_row, k, (C)0));
        STORED(out, out_row, k, HELD(own_g, g, g_row, k, (C)0) - exponential * all);
    }
}
#endif

#ifdef HAS_layer_norm
KERNEL(GROUP_SIZE) void layer_norm(
    const Parameters parameters, GLOBAL const void* x, GLOBAL const void* gamma,
    GLOBAL const void* beta, GLOBAL void* out) {
    BEGIN
    HOLD(own_x, x, x_row)
    V sum = (C)0, squares = (C)0;
    EACH(k) sum += HELD(own_x, x, x_row, k, (C)0);
    const C mean = ACROSS_LANES(row_sum, sum) / (C)n;
    EACH(k) {
        const V distance = HELD(own_x, x, x_row, k, mean) - mean;
        squares += distance * distance;
    }
    const C epsilon = SCALAR((ulong)parameters.epsilon);
    const C inverse = (C)1 / sqrt(ACROSS_LANES(row_sum, squares) / (C)n + epsilon);
    EACH(k) {
        V value = (HELD(own_x, x, x_row, k, mean) - mean) * inverse;
        if (parameters.has_gamma) value *= LOADED(gamma, parameters.offset_2, k, (C)1);
        if (parameters.has_beta) value += LOADED(beta, parameters.offset_3, k, (C)0);
        STORED(out, out_row, k, value);
    }
}
#endif
#ifdef HAS_rms_norm
KERNEL(GROUP_SIZE) void rms_norm(
    const Parameters parameters, GLOBAL const void* x, GLOBAL const void* gamma,
    GLOBAL void* out) {
    BEGIN
    HOLD(own_x, x, x_row)
    V squares = (C)0;
    EACH(k) {
        const V value = HELD(own_x, x, x_row, k, (C)0);
        squares += value * value;
    }
    const C epsilon = SCALAR((ulong)parameters.epsilon);
    const C inverse = (C)1 / sqrt(ACROSS_LANES(row_sum, squares) / (C)n + epsilon);
    EACH(k) {
        V value = HELD(own_x, x, x_row, k, (C)0) * inverse;
        if (parameters.has_gamma) value *= LOADED(gamma, parameters.offset_2, k, (C)1);
        STORED(out, out_row, k, value);
    }
}
#endif
// The gradient by x, and the terms of which sums are the gradient by gamma.
#ifdef HAS_layer_norm_grad
KERNEL(GROUP_SIZE) void layer_norm_grad(
    const Parameters parameters, GLOBAL const void* x, GLOBAL const void* gamma,
    GLOBAL const void* g, GLOBAL void* out, GLOBAL void* gamma_terms) {
    BEGIN
    const long g_row = parameters.offset_3 + row * n;
    HOLD(own_x, x, x_row)
    HOLD(own_g, g, g_row)
    V sum = (C)0, squares = (C)0, weighted_sum = (C)0, projected_sum = (C)0;
    EACH(k) sum += HELD(own_x, x, x_row, k, (C)0);
    const C mean = ACROSS_LANES(row_sum, sum) / (C)n;
    EACH(k) {
        const V distance = HELD(own_x, x, x_row, k, mean) - mean;
        squares += distance * distance;
    }
    const C epsilon = SCALAR((ulong)parameters.epsilon);
    const C inverse = (C)1 / sqrt(ACROSS_LANES(row_sum, squares) / (C)n + epsilon);
    EACH(k) {
        const V own = HELD(own_g, g, g_row, k, (C)0);
        const V normal = (HELD(own_x, x, x_row, k, mean) - mean) * inverse;
        V weighted = own;
        if (parameters.has_gamma) weighted *= LOADED(gamma, parameters.offset_2, k, (C)1);
        STORED_WIDE(gamma_terms, out_row, k, own * normal);
        weighted_sum += weighted;
        projected_sum += weighted * normal;
    }
    const C weighted_mean = ACROSS_LANES(row_sum, weighted_sum) / (C)n;
    const C projected_mean = ACROSS_LANES(row_sum, projected_sum) / (C)n;
    EACH(k) {
        const V normal = (HELD(own_x, x, x_row, k, mean) - mean) * inverse;
        V weighted = HELD(own_g, g, g_row, k, (C)0);
        if (parameters.has_gamma) weighted *= LOADED(gamma, parameters.offset_2, k, (C)1);
        STORED(out, out_row, k, (weighted - weighted_mean - normal * projected_mean) * inverse);
    }
}
#endif
