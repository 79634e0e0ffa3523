/**
 * Annotation processor, which runs within the compiler. It writes the index of services that
 * {@link dev.rpcx.RegistryServer#registry(Object...)} reads, and refuses at build time what
 * {@link dev.rpcx.internal.schema.Schema} would refuse at start. Starting point: {@link dev.rpcx.processor.ServiceProcessor}.
 * The package imports neither Netty nor Protobuf, so that the jar alone is enough on a processor path.
 */
@NullMarked
package dev.rpcx.processor;

import org.jspecify.annotations.NullMarked;
