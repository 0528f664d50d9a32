// Functions of rows of n elements. On a CPU an item takes a row, in vectors of 64 bytes, of which the
// last is filled up (BY_ITEM). On a GPU LANES items of a group go along each row, neighbours beside
// each other, and where a row is not too long each of them holds PER pieces of it in registers.

typedef struct {
    long rows, n, type, start_1, start_2, start_3, epsilon, has_gamma, has_beta;
} Parameters;
#define TYPE (parameters.type)
#ifdef TYPE_0
#undef TYPE
#define TYPE TYPE_0
#endif

#if IS_DOUBLE
#define WIDE FLOAT64
#else
#define WIDE FLOAT32
#endif

#if BY_ITEM
#if IS_DOUBLE
#define WIDTH 8
#else
#define WIDTH 16
#endif
#define V JOIN(C, WIDTH)
#define ROW ITEM
#define EACH(k) for (long k = 0; k < n; k += WIDTH)
#define LOADED(p, place, k, fill) loaded(p, (place) + k, n - k, TYPE, fill)
#define STORED(p, place, k, v) stored(p, (place) + k, n - k, TYPE, v)
#define STORED_WIDE(p, place, k, v) stored(p, (place) + k, n - k, WIDE, v)
#define ACROSS(function, v) function(v)

inline V loaded(GLOBAL const void* p, long place, long left, int type, C fill) {
    if (left >= WIDTH && type == WIDE)
        return JOIN(vload, WIDTH)(0, AS(const C, p) + place);
    C values[WIDTH];
    for (int j = 0; j < WIDTH; ++j) values[j] = j < left ? READ(p, place + j, type) : fill;
    return JOIN(vload, WIDTH)(0, values);
}
inline void stored(GLOBAL void* p, long place, long left, int type, V x) {
    if (left >= WIDTH && type == WIDE) {
        JOIN(vstore, WIDTH)(x, 0, AS(C, p) + place);
        return;
    }
    C values[WIDTH];
    JOIN(vstore, WIDTH)(x, 0, values);
    for (int j = 0; j < WIDTH && j < left; ++j) WRITE(p, place + j, type, values[j]);
}
inline C total(V x) {
    C values[WIDTH];
    JOIN(vstore, WIDTH)(x, 0, values);
    C sum = values[0];
    for (int j = 1; j < WIDTH; ++j) sum += values[j];
    return sum;
}
inline C peak(V x) {
    C values[WIDTH];
    JOIN(vstore, WIDTH)(x, 0, values);
    C best = values[0];
    for (int j = 1; j < WIDTH; ++j) best = fmax(best, values[j]);
    return best;
}
#define SHARED
#else
#if BY_QUADS
#define V QUAD
#define SPAN 4
#define LOADED(p, place, k, fill) READ_QUAD(p, (place) + k, TYPE)
#define STORED(p, place, k, v) WRITE_QUAD(p, (place) + k, TYPE, v)
#define STORED_WIDE(p, place, k, v) WRITE_QUAD(p, (place) + k, WIDE, v)
#define SUMMED(v) ((v.x + v.y) + (v.z + v.w))
#define HIGHEST(v) fmax(fmax(v.x, v.y), fmax(v.z, v.w))
#else
#define V C
#define SPAN 1
#define LOADED(p, place, k, fill) READ(p, (place) + k, TYPE)
#define STORED(p, place, k, v) WRITE(p, (place) + k, TYPE, v)
#define STORED_WIDE(p, place, k, v) WRITE(p, (place) + k, WIDE, v)
#define SUMMED(v) v
#define HIGHEST(v) v
#endif
#define ROW (GROUP * (GROUP_SIZE / LANES) + LANE / LANES)
#define OWN (LANE % LANES)
#ifdef PER
#define EACH(k)                              \
    UNROLL for (int at = 0; at < PER; ++at)  \
        for (long k = ((long)at * LANES + OWN) * SPAN; k < n; k = n)
#else
#define EACH(k) for (long k = OWN * SPAN; k < n; k += LANES * SPAN)
#endif
#define ACROSS(function, v) function(v, shared + LANE / LANES * LANES)
#define SHARED LOCAL C shared[GROUP_SIZE] ALIGNED;

// What the items of a row have: joined by halves until FEW are left, which each item goes through.
#define FEW (LANES < 8 ? LANES : 8)
#define JOIN_LANES(function, own)                                          \
    shared[OWN] = own;                                                     \
    UNROLL for (int step = LANES / 2; step >= FEW; step /= 2) {            \
        BARRIER;                                                           \
        if (OWN < step) shared[OWN] = function(shared[OWN], shared[OWN + step]); \
    }                                                                      \
    BARRIER;                                                               \
    C all = shared[0];                                                     \
    UNROLL for (int j = 1; j < FEW; ++j) all = function(all, shared[j]);   \
    BARRIER;                                                               \
    return all;
#define PLUS(x, y) ((x) + (y))

inline C total(V own, LOCAL C* shared) { JOIN_LANES(PLUS, SUMMED(own)) }
inline C peak(V own, LOCAL C* shared) { JOIN_LANES(fmax, HIGHEST(own)) }
#endif

// What is read more than once: from memory each time, or kept in registers. KEEP and KEPT are for
// what is computed on the way, which lies in the result meanwhile.
#ifdef PER
#define HOLD(held, p, place) V held[PER]; EACH(k) held[at] = LOADED(p, place, k, (C)0);
#define HELD(held, p, place, k, fill) held[at]
#define KEEP(held, k, v) held[at] = v
#define KEPT(held, k) held[at]
#else
#define HOLD(held, p, place)
#define HELD(held, p, place, k, fill) LOADED(p, place, k, fill)
#define KEEP(held, k, v) STORED(out, out_row, k, v)
#define KEPT(held, k) LOADED(out, out_row, k, (C)0)
#endif

// Items without a row go along too, as far as none.
#define BEGIN                                                     \
    SHARED const long row = ROW, x_row = parameters.start_1 + row * parameters.n; \
    const long n = row < parameters.rows ? parameters.n : 0, out_row = row * n;

// NaN is not seen by fmax, but comes back with the exponential.
#ifdef HAS_softmax
KERNEL(GROUP_SIZE)
void softmax(const Parameters parameters, GLOBAL const void* x, GLOBAL void* out) {
    BEGIN
    HOLD(own_x, x, x_row)
    V best = -(C)INFINITY;
    EACH(k) best = fmax(best, HELD(own_x, x, x_row, k, -(C)INFINITY));
    const C highest = ACROSS(peak, best);
    V sum = (C)0;
    EACH(k) {
        const V power = exp(HELD(own_x, x, x_row, k, -(C)INFINITY) - highest);
        sum += power;
        KEEP(own_x, k, power);
    }
    const C factor = (C)1 / ACROSS(total, sum);
    EACH(k) STORED(out, out_row, k, KEPT(own_x, k) * factor);
}
#endif
#ifdef HAS_log_softmax
KERNEL(GROUP_SIZE)
void log_softmax(const Parameters parameters, GLOBAL const void* x, GLOBAL void* out) {
    BEGIN
    HOLD(own_x, x, x_row)
    V best = -(C)INFINITY;
    EACH(k) best = fmax(best, HELD(own_x, x, x_row, k, -(C)INFINITY));
    const C highest = ACROSS(peak, best);
    V sum = (C)0;
    EACH(k) sum += exp(HELD(own_x, x, x_row, k, -(C)INFINITY) - highest);
    const C shift = log(ACROSS(total, sum));
    EACH(k) STORED(out, out_row, k, HELD(own_x, x, x_row, k, (C)0) - highest - shift);
}
#endif
#ifdef HAS_softmax_grad
KERNEL(GROUP_SIZE) void softmax_grad(
    const Parameters parameters, GLOBAL const void* output, GLOBAL const void* g,
    GLOBAL void* out) {
    BEGIN
    const long g_row = parameters.start_2 + row * n;
    HOLD(own_output, output, x_row)
    HOLD(own_g, g, g_row)
    V sum = (C)0;
    EACH(k) sum += HELD(own_output, output, x_row, k, (C)0) * HELD(own_g, g, g_row, k, (C)0);
    const C all = ACROSS(total, sum);
    EACH(k) {
        const V slope = HELD(own_g, g, g_row, k, (C)0) - all;
        STORED(out, out_row, k, HELD(own_output, output, x_row, k, (C)0) * slope);
    }
}
#endif
#ifdef HAS_log_softmax_grad
KERNEL(GROUP_SIZE) void log_softmax_grad(
    const Parameters parameters, GLOBAL const void* output, GLOBAL const void* g,
    GLOBAL void* out) {
    BEGIN
    const long g_row = parameters.start_2 + row * n;
    HOLD(own_output, output, x_row)
    HOLD(own_g, g, g_row)
    V sum = (C)0;
    EACH(k) sum += HELD(own_g, g, g_row, k, (C)0);
    const C all = ACROSS(total, sum);
    EACH(k) {
        const V power = exp(HELD(own_output, output, x_row, k, (C)0));
        STORED(out, out_row, k, HELD(own_g, g, g_row, k, (C)0) - power * all);
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
    const C mean = ACROSS(total, sum) / (C)n;
    EACH(k) {
        const V distance = HELD(own_x, x, x_row, k, mean) - mean;
        squares += distance * distance;
    }
    const C epsilon = OF_NUMBER((ulong)parameters.epsilon);
    const C inverse = (C)1 / sqrt(ACROSS(total, squares) / (C)n + epsilon);
    EACH(k) {
        V value = (HELD(own_x, x, x_row, k, mean) - mean) * inverse;
        if (parameters.has_gamma) value *= LOADED(gamma, parameters.start_2, k, (C)1);
        if (parameters.has_beta) value += LOADED(beta, parameters.start_3, k, (C)0);
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
    const C epsilon = OF_NUMBER((ulong)parameters.epsilon);
    const C inverse = (C)1 / sqrt(ACROSS(total, squares) / (C)n + epsilon);
    EACH(k) {
        V value = HELD(own_x, x, x_row, k, (C)0) * inverse;
        if (parameters.has_gamma) value *= LOADED(gamma, parameters.start_2, k, (C)1);
        STORED(out, out_row, k, value);
    }
}
#endif
// The gradient by x, and what adds up to that by gamma.
#ifdef HAS_layer_norm_grad
KERNEL(GROUP_SIZE) void layer_norm_grad(
    const Parameters parameters, GLOBAL const void* x, GLOBAL const void* gamma,
    GLOBAL const void* g, GLOBAL void* out, GLOBAL void* steep) {
    BEGIN
    const long g_row = parameters.start_3 + row * n;
    HOLD(own_x, x, x_row)
    HOLD(own_g, g, g_row)
    V sum = (C)0, squares = (C)0, level_sum = (C)0, bend_sum = (C)0;
    EACH(k) sum += HELD(own_x, x, x_row, k, (C)0);
    const C mean = ACROSS(total, sum) / (C)n;
    EACH(k) {
        const V distance = HELD(own_x, x, x_row, k, mean) - mean;
        squares += distance * distance;
    }
    const C epsilon = OF_NUMBER((ulong)parameters.epsilon);
    const C inverse = (C)1 / sqrt(ACROSS(total, squares) / (C)n + epsilon);
    EACH(k) {
        const V own = HELD(own_g, g, g_row, k, (C)0);
        const V normal = (HELD(own_x, x, x_row, k, mean) - mean) * inverse;
        V weighted = own;
        if (parameters.has_gamma) weighted *= LOADED(gamma, parameters.start_2, k, (C)1);
        STORED_WIDE(steep, out_row, k, own * normal);
        level_sum += weighted;
        bend_sum += weighted * normal;
    }
    const C level = ACROSS(total, level_sum) / (C)n;
    const C bend = ACROSS(total, bend_sum) / (C)n;
    EACH(k) {
        const V normal = (HELD(own_x, x, x_row, k, mean) - mean) * inverse;
        V weighted = HELD(own_g, g, g_row, k, (C)0);
        if (parameters.has_gamma) weighted *= LOADED(gamma, parameters.start_2, k, (C)1);
        STORED(out, out_row, k, (weighted - level - normal * bend) * inverse);
    }
}
#endif
