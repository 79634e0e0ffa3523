/**
 * The annotation processor, which runs inside the compiler. It writes the index of services that
 * {@link dev.rpcx.RegistryServer#registry(Object...)} reads, and reports as compile errors what
 * {@link dev.rpcx.internal.schema.Schema} would refuse at start. Starting point: {@code ServiceProcessor}.
 *
 * <p>This package uses the annotations of {@code dev.rpcx} and {@code dev.rpcx.schema}. Of {@code internal.schema}, it
 * uses only {@code Accessors}, {@code Cases}, {@code ErrorType}, {@code ParameterNumbers} and {@code Refusals}, and of
 * these nothing but what deals with names, annotations and texts. It imports neither Netty nor Protobuf, so RPCX's jar
 * alone is enough on a processor path. It must not load a class of the project, since the project is not compiled yet.
 * It must not use lock files, which keep the Protobuf numbers of earlier releases, since the compiler cannot see them.
 *
 * <ul>
 *   <li>Services: {@link dev.rpcx.processor.ServiceProcessor} finds the services and the interfaces of clients. In the
 *       last round, when other processors such as Lombok's have done their work, it checks their names and which
 *       methods they publish, reports each fault once, and writes the index.
 *   <li>Methods: {@link dev.rpcx.processor.TypeCheck} decides by the rules of {@code Schema} whether the types of
 *       parameters and results, and the states of declared exceptions, can be mapped to Protobuf, and keeps the types
 *       that it has checked. {@link dev.rpcx.processor.CallCheck} checks the method itself by the rules of
 *       {@code ClientProxy} and {@code RegistryServer}: its times, its result, the argument that chooses the instance,
 *       and the number of its parameters.
 *   <li>Native images: {@link dev.rpcx.processor.NativeConfiguration} writes the file from which a GraalVM native
 *       image learns which of the checked types are used by reflection.
 * </ul>
 *
 * <p>Threads: the processor starts no threads, and runs on the compiler's thread.
 */
@NullMarked
package dev.rpcx.processor;

import org.jspecify.annotations.NullMarked;
