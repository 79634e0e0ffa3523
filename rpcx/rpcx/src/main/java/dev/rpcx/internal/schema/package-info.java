/**
 * Maps Java types to Protobuf messages: which component has which number, which types cannot be mapped, what a lock
 * file keeps between releases, and which changes break a peer. Starting points: {@code Schema} and {@code LockFile}.
 *
 * <p>This package uses the annotations of {@code dev.rpcx.schema} and, for the export alone, protobuf-java, which RPCX
 * does not bring along. It must know neither the codec nor any other room: {@code Schema} knows {@code RPCXFuture} only
 * by its name.
 *
 * <ul>
 *   <li>From a Java type to a message: {@link Schema} looks at each type once, and decides what it becomes or why it
 *       cannot be mapped; {@link Use} is one use of a class, with what its type parameters stand for there;
 *       {@link BeanProperty} finds the fields of a class that have a getter and a setter, and {@link Constructed} the
 *       constructor of a class without setters; {@link Accessors} has the names that getters and setters may have,
 *       {@link Cases} the names of a sealed type's cases, and {@link Refusals} what to write in place of other types:
 *       all three also have the texts of errors that the annotation processor shares. {@link FileNullables} finds
 *       annotations {@code Nullable} that are only in class files. {@link ErrorType} finds what the constructor of an
 *       exception takes and which methods return it, for an exception that arrives as itself.
 *   <li>The message: {@link Shape} is the type of one value on the wire, and has four kinds. {@link Scalar} is a single
 *       Protobuf scalar; {@link WellKnown} is a message of a fixed form, such as a timestamp; {@link EnumType} has the
 *       numbers of an enum's constants, and the constant that stands for the unknown; {@link MessageType} has the
 *       fields of a message, and the members by which a codec reads and makes the Java object. {@link FieldType} is one
 *       field: its number, its shape, and what holds the value in Java.
 *   <li>Numbers: {@link Numbers} assigns the numbers of one type's members, all from one source; {@link NumberSource}
 *       names the sources; {@link ParameterNumbers} finds the numbers of a method's parameters for {@code call} and the
 *       annotation processor; {@link LockFile} has the numbers of a lock file, and joins all lock files of a class
 *       path; {@link LockLines} makes the lines of a type, a request or a reply; {@link LineType} is the type of a
 *       member as a line writes it.
 *   <li>What breaks a peer: {@link Framing} has a kind for each of the fields 1 to 6 of a request, a reply or an item,
 *       in which both sides of a call have to agree; {@link Compatibility} compares two lock files by the names and
 *       numbers of members, and says what the change breaks, for which side, and what may have been renamed;
 *       {@link MethodSchema} has the members of one method, with a hash that client and server compare when a
 *       connection opens; {@link SchemaDifference} finds a member that one of them would misread.
 *   <li>Export: {@link ProtoFile} makes the descriptor of a {@code .proto} file of services and their messages, and
 *       {@link ProtoText} its text; {@link ProtoNames} makes the names of services and methods in it, which a server
 *       that speaks gRPC needs too; {@link ProtoImports} has the files that are imported; {@link DescribedService} is a
 *       service with its file, as a server sends it, and {@link DescribedFiles} are the files of all services, as the
 *       reflection of gRPC sends them.
 * </ul>
 *
 * <p><b>Why was this type refused?</b> The rules stand at {@code Schema}, and the text of the {@code SchemaException}
 * names the component. Most types are refused by {@code Schema}, in the words of {@code Refusals}. {@code Use} refuses
 * a type parameter if nothing says what it stands for; {@code BeanProperty} refuses a field with one accessor, or with
 * accessors of another type; {@code Constructed} refuses a constructor whose parameters may have another order;
 * {@code Numbers} refuses a number that is taken or missing; {@code FieldType} refuses a number that Protobuf does not
 * allow; {@code LockFile} refuses files that cannot be read or that contradict each other.
 *
 * <p><b>A new Java type in messages</b> would get a constant of {@code Scalar} or {@code WellKnown}, which
 * {@code Schema} chooses for the Java class; for the annotation processor, {@code TypeCheck} has the same choice. In
 * {@code codec}, {@code Out} and {@code In} would each get a method for it, which {@code ElementCodec} and
 * {@code Generator} call. The descriptor of a message that a {@code .proto} imports for it would be known to
 * {@code ProtoImports}, and {@code rpcx/spec/schema.md} would name its form.
 *
 * <p>Threads: all of these classes run at start or at build time, and never during a call. During calls, codecs only
 * read the messages and enums, which do not change any more then. {@code Schema} is thread-safe, and a {@code LockFile}
 * never changes; {@code ProtoFile} is for one thread.
 */
@NullMarked
package dev.rpcx.internal.schema;

import org.jspecify.annotations.NullMarked;
