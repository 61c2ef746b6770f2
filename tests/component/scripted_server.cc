// The client library's scripted API server, compiled for these tests: it is not part of the
// library.
#include "kube/tests/scripted_server.cc"
