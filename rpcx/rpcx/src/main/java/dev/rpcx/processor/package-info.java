/**
 * Annotation processor, which runs within the compiler. It writes the index of services that
 * {@link dev.rpcx.RegistryServer#registry(Object...)} reads, and refuses at build time what
 * {@link dev.rpcx.internal.schema.Schema} would refuse at start. Starting point: {@code ServiceProcessor}.
 *
 * <p>It uses the annotations of {@code dev.rpcx} and {@code dev.rpcx.schema}, and of {@code internal.schema} the
 * classes that need names and annotations alone. The package imports neither Netty nor Protobuf, so that the jar alone
 * is enough on a processor path. It must not use a loaded class of the project, since the project is not compiled yet,
 * nor a lock, since the compiler cannot see locks.
 *
 * <ul>
 *   <li>What it is given: {@link dev.rpcx.processor.ServiceProcessor} finds the services and the interfaces of clients,
 *       checks their names and which methods they publish, reports each fault once, and writes the index.
 *   <li>What it checks of each method: {@link dev.rpcx.processor.TypeCheck} decides by the rules of {@code Schema}
 *       whether the types of parameters and results can be mapped, and knows all types that it has met;
 *       {@link dev.rpcx.processor.CallCheck} checks the method itself by the rules of {@code ClientProxy} and
 *       {@code RegistryServer}: its times, its result, the argument that routes it, the number of its parameters.
 *   <li>What it writes last: {@link dev.rpcx.processor.NativeConfiguration} is the file that tells a GraalVM native
 *       image which of these types are reached by reflection.
 * </ul>
 *
 * <p>Threads: the processor has none of its own, and runs on the compiler's thread.
 */
@NullMarked
package dev.rpcx.processor;

import org.jspecify.annotations.NullMarked;
