/** Shows a server with TLS that knows its callers. Start at {@link dev.rpcx.examples.tls.Vault}. */
@NullMarked
package dev.rpcx.examples.tls;

import org.jspecify.annotations.NullMarked;
