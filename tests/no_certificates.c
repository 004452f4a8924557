/* Nothing here is ever checked against a certificate: see add_criterion_program() in CMakeLists.txt. */
int mbedtls_x509_crt_parse_file(void *chain, const char *path);
int mbedtls_x509_crt_parse_path(void *chain, const char *path);

int mbedtls_x509_crt_parse_file(void *chain, const char *path) { return (void)chain, (void)path, 0; }
int mbedtls_x509_crt_parse_path(void *chain, const char *path) { return (void)chain, (void)path, 0; }
