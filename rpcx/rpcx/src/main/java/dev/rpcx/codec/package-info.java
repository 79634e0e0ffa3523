/**
 * Encodes Java values as Protobuf and decodes them, directly between a buffer and the value's own constructor and
 * accessors. Starting points: {@code Codecs} and {@code Codec}; {@code Out} and {@code In} implement the wire format.
 *
 * <p>It uses {@code dev.rpcx.schema}, {@code internal.schema} and Netty's buffers. It must not know the wire, the
 * client and the server, nor any other package of RPCX: a codec knows a message and no call, and asks for the memory of
 * the message only through {@code Memory}.
 *
 * <ul>
 *   <li>From a type to a codec: {@link Codecs} makes codecs, one for each method, type or parameter, and warns of types
 *       whose numbers come from the order of declaration; {@link Codec} is what it returns, and writes and reads a
 *       whole message.
 *   <li>The codec of a message: {@link MessageCodec} is the class that the others extend, and estimates the memory of
 *       an object; {@link Generator} makes a class for a record or a class with accessors, and decides which fields
 *       need no {@code FieldCodec}; {@link ClassFile} builds the bytes of that class; {@link ReflectiveCodec} takes its
 *       place if no class can be generated, and uses method handles; {@link OneofCodec} is for a sealed type, and finds
 *       the case that a value is; {@link TupleCodec} is for the parameters of a method, and for a single value as field
 *       1.
 *   <li>The codec of a field: {@link FieldCodec} decides whether a value is sent, what value stands for an absent
 *       field, and which object collects elements, and does so by the kind of the field (a plain one, a list, a map and
 *       others); {@link ElementCodec} writes and reads one value without a tag, and says what its default is and how
 *       much memory its object takes.
 *   <li>Writing and reading: {@link Out} writes the wire format, and puts lengths before what it has written;
 *       {@link In} reads it, and counts what the message takes; {@link Pool} keeps objects of both for the next
 *       message.
 *   <li>What a message may take: {@link Limits} are the limits of one message: its size, depth, elements, numbers and
 *       memory; {@link Memory} grants memory while a message is read; {@link HeapArray} computes what an array really
 *       takes of the heap, and how far a buffer grows; {@link KeyHashes} counts keys of sets and maps that have the
 *       same hash, since comparing them takes time, and {@link In} limits how much of that one message may cause.
 *   <li>Errors: {@link CodecException} says which kind of fault it is, and names fields as the schema does;
 *       {@link PeerText} finds the text of a foreign exception that a peer may see, without names of classes.
 * </ul>
 *
 * <p><b>Why was this message refused?</b> {@code CodecException.Code} has the kinds of fault, and the text names the
 * message or the field. When a message is read, {@code In} finds most faults, such as too much depth;
 * {@code FieldCodec} finds an element or an entry without a value; {@code ElementCodec} finds a constant, and
 * {@code OneofCodec} a case, that is not known here. When a message is written, {@code Out} makes the error for a null
 * within the message, and {@code Codecs} the error for a null instead of a message;
 * {@code MessageCodec.expectNoSubclass} and {@code OneofCodec} refuse an object of the wrong class; {@code Out} refuses
 * what is too large or too deep, and half a surrogate pair. What the type's own code throws becomes a REFUSED in
 * {@code CodecException.ofForeign}.
 *
 * <p><b>Where is the memory of a message bounded?</b> {@code In.read} refuses a message that is too long, and
 * {@code In.open} sets how much the message may take, by its {@code Limits}. {@code In.take} asks {@code Memory} when
 * the bytes that are free or granted are used up, before objects are created; {@code Codec.read} names the two
 * exceptions. {@code In.element} counts elements, {@code In.memory} the objects of messages, and sets and maps without
 * their elements; {@code In.room} bounds the room that lists get in advance. If no {@code Memory} is given, only the
 * limits apply. {@code Out.checkSize} bounds what is written.
 *
 * <p><b>What does a generated class call?</b> The getters of its type, its constructor and its setters; of
 * {@code MessageCodec}, which it extends, the constructor and {@code expectNoSubclass}; the public methods of
 * {@code Out}, which write whole fields; the public methods of {@code In}; and the public methods of {@code FieldCodec}
 * for each field that is not a plain one of a scalar or a well-known type. These four classes are public for that
 * reason alone. {@code Generator} shows the code of an example, and has a table of the methods.
 *
 * <p>Threads: codecs are made at start and are thread-safe; they run on the thread that calls them. An {@code In} or an
 * {@code Out} belongs to one message at a time. Nothing here logs during a call. Nothing blocks either, with one
 * exception: {@code HeapArray} starts a daemon thread, {@code rpcx-heap}, which finds out the size of the heap's
 * regions once. A thread that needs this size for a large array before it is known waits for it.
 */
@NullMarked
package dev.rpcx.codec;

import org.jspecify.annotations.NullMarked;
