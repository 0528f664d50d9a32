// Functions of float32 without branches and calls, so that compilers for CPUs vectorize loops over
// them. The polynomials of log and tanh are those of Cephes (S. L. Moshier, 1989), the rational function
// of erf is that of Eigen (M. Ebner, 2016).
#define SELECT(condition, x, y) select(y, x, condition)
inline float burn_log(float x) {
    const float scaled = x < 1.17549435e-38f ? x * 8388608.0f : x;
    const uint bits = as_uint(scaled);
    const float mantissa = as_float((bits & 0x007fffffu) | 0x3f000000u);
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
