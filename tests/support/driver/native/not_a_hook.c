/* A library that loads well and has no InitializeInjection. */
int something_else(void) {
    return 0;
}
