package dev.rpcx.spring;

import java.util.List;

/**
 * Published names of the services for which the application's packages have clients. The services of clients that a
 * profile or another condition leaves out are included, since the configuration may have keys for them all the same.
 *
 * @param names sorted names; code that Spring generates ahead of time contains them in this order
 */
record CalledServices(List<String> names) {}
