// Functions that OpenCL C lacks, or defines otherwise. The prefix burn_ marks those that replace a
// function of OpenCL C of the same name.

#if IS_FLOATING
#if IS_DOUBLE
#define C_LITERAL(x) x
#else
#define C_LITERAL(x) CONCAT(x, f)
#endif
#define SQRT_HALF (C)C_LITERAL(0.7071067811865476)
#if IS_CPU && !IS_DOUBLE
// Without branches and calls, so that compilers vectorize loops over them. The polynomials of log and
// tanh are those of Cephes (S. L. Moshier, 1989), the rational function of erf is that of Eigen
// (M. Ebner, 2016).
inline float burn_log(float x) {
    const float scaled = x < 1.17549435e-38f ? x * 8388608.0f : x;
    const uint bits = FLOAT_AS_UINT(scaled);
    const float mantissa = UINT_AS_FLOAT((bits & 0x007fffffu) | 0x3f000000u);
    const int is_low = mantissa < 0.70710678f;
    const float e = (float)((int)(bits >> 23) - 126 - is_low - (x < 1.17549435e-38f ? 23 : 0));
    const float m = (is_low ? mantissa + mantissa : mantissa) - 1.0f, z = m * m;
    float y = 7.0376836292e-2f * m - 1.1514610310e-1f;
    y = y * m + 1.1676998740e-1f;
    y = y * m - 1.2420140846e-1f;
    y = y * m + 1.4249322787e-1f;
    y = y * m - 1.6668057665e-1f;
    y = y * m + 2.0000714765e-1f;
    y = y * m - 2.4999993993e-1f;
    y = y * m + 3.3333331174e-1f;
    y = y * m * z - 2.12194440e-4f * e - 0.5f * z;
    const float result = (m + y) + 0.693359375f * e;
    const float edge = SELECT(x == 0.0f, -INFINITY, SELECT(x < 0.0f, NAN, x));
    return SELECT((x > 0.0f) & (x < INFINITY), result, edge);
}
inline float burn_log1p(float x) {
    const float u = 1.0f + x, result = burn_log(u), lost = (x - (u - 1.0f)) / u;
    const float more = result + SELECT((u > 0.0f) & (u < INFINITY), lost, 0.0f);
    return SELECT(x == 0.0f, x, more);
}
inline float burn_expm1(float x) {
    float y = 2.4801587e-5f * x + 1.9841270e-4f;
    y = y * x + 1.3888889e-3f;
    y = y * x + 8.3333333e-3f;
    y = y * x + 4.1666667e-2f;
    y = y * x + 1.6666667e-1f;
    y = y * x + 0.5f;
    const float large = exp(x) - 1.0f;
    return copysign(SELECT(fabs(x) < 0.5f, y * x * x + x, large), x);
}
inline float burn_tanh(float x) {
    const float z = x * x;
    float y = -5.70498872745e-3f * z + 2.06390887954e-2f;
    y = y * z - 5.37397155531e-2f;
    y = y * z + 1.33314422036e-1f;
    y = y * z - 3.33332819422e-1f;
    const float w = fabs(x), large = 1.0f - 2.0f / (exp(2.0f * w) + 1.0f);
    return copysign(SELECT(w < 0.625f, y * z * w + w, large), x);
}
inline float burn_erf(float x) {
    const float w = SELECT(fabs(x) > 4.0f, copysign(4.0f, x), x), z = w * w;
    float numerator = -2.72614225801306e-10f * z + 2.77068142495902e-08f;
    numerator = numerator * z - 2.10102402082508e-06f;
    numerator = numerator * z - 5.69250639462346e-05f;
    numerator = numerator * z - 7.34990630326855e-04f;
    numerator = numerator * z - 2.95459980854025e-03f;
    numerator = numerator * z - 1.60960333262415e-02f;
    float denominator = -1.45660718464996e-05f * z - 2.13374055278905e-04f;
    denominator = denominator * z - 1.68282697438203e-03f;
    denominator = denominator * z - 7.37332916720468e-03f;
    denominator = denominator * z - 1.42647390514189e-02f;
    return w * numerator / denominator;
}
#else
#define burn_log log
#define burn_log1p log1p
#define burn_expm1 expm1
#define burn_erf erf
// The tanh of some drivers does not reach 1.
inline C burn_tanh(C x) {
    const C decay = expm1((C)-2 * fabs(x));
    return copysign(-decay / ((C)2 + decay), x);
}
#endif
inline C floor_divide(C x, C y) {
    if (y == (C)0) return x / y;
    const C remainder = fmod(x, y);
    C ratio = (x - remainder) / y;
    if (remainder != (C)0 && (remainder < (C)0) != (y < (C)0)) ratio -= (C)1;
    if (ratio == (C)0) return copysign((C)0, x / y);
    const C whole = floor(ratio);
    return ratio - whole > (C)0.5f ? whole + (C)1 : whole;
}
inline C floor_mod(C x, C y) {
    const C remainder = fmod(x, y);
    if (remainder == (C)0) return copysign((C)0, y);
    return (remainder < (C)0) != (y < (C)0) ? remainder + y : remainder;
}
inline C sigmoid(C x) {
    const C decay = exp(-fabs(x));
    return (x < (C)0 ? decay : (C)1) / ((C)1 + decay);
}
inline C softplus(C x, C beta) {
    // fmax drops NaN, but the exponential propagates it.
    return fmax(x, (C)0) + burn_log1p(exp(-fabs(x) * beta)) / beta;
}
// tanh(log(1 + exp(x))), which is 1 for all x above 30.
inline C tanh_of_softplus(C x) {
    const C w = exp(fmin(x, (C)30)), n = w * (w + (C)2);
    return n / (n + (C)2);
}
inline C log_add_exp(C x, C y) {
    const C distance = x == y ? (C)0 : fabs(x - y);
    return maximum(x, y) + burn_log1p(exp(-distance));
}
inline C gelu_inner(C x) {
    return (x * ((C)1 + (C)C_LITERAL(0.044715) * x * x)) * (C)C_LITERAL(0.7978845608028654);
}
inline C gelu_derivative(C x) {
    const C area = (C)0.5f * ((C)1 + burn_erf(x * SQRT_HALF));
    return area + x * (C)C_LITERAL(0.3989422804014327) * exp((C)-0.5f * x * x);
}
inline C gelu_tanh_derivative(C x) {
    // (1 + tanh(y)) / 2 is sigmoid(2 y), which is exact where it is small.
    const C half_sum = sigmoid((C)2 * gelu_inner(x));
    const C inner = x * ((C)1 + (C)C_LITERAL(0.134145) * x * x) * (C)C_LITERAL(0.3989422804014327);
    return half_sum + inner * (C)4 * half_sum * ((C)1 - half_sum);
}
#else
inline C floor_divide(C x, C y) {
    if (y == 0) return 0;
    if (IS_SIGNED && y == (C)-1) return (C)(0 - (ulong)x);
    const C truncated = x / y;
    return x % y != 0 && (x < 0) != (y < 0) ? truncated - 1 : truncated;
}
inline C truncated_mod(C x, C y) {
    return y == 0 || (IS_SIGNED && y == (C)-1) ? 0 : x % y;
}
inline C floor_mod(C x, C y) {
    const C remainder = truncated_mod(x, y);
    return remainder != 0 && (remainder < 0) != (y < 0) ? remainder + y : remainder;
}
inline C integer_power(C base, C exponent) {
    if (IS_SIGNED && exponent < 0) {
        if (base == 1) return 1;
        if (base == (C)-1) return exponent & 1 ? (C)-1 : 1;
        return 0;
    }
    ulong result = 1, factor = (ulong)base;
    for (ulong left = (ulong)exponent; left; left >>= 1) {
        if (left & 1) result *= factor;
        factor *= factor;
    }
    return (C)result;
}
inline C shift_left(C x, C count) { return (ulong)count >= 64 ? 0 : (C)((ulong)x << count); }
inline C shift_right(C x, C count) {
    if ((ulong)count >= 64) return x < 0 ? (C)-1 : 0;
    return x >> count;
}
#endif
