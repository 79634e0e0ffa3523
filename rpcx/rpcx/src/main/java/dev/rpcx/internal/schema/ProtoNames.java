package dev.rpcx.internal.schema;

import dev.rpcx.schema.SchemaException;

/**
 * Makes the names that packages, services and methods have in an exported {@code .proto}. Unlike {@link ProtoFile},
 * this class does not need protobuf-java, so a server that speaks gRPC uses it too.
 */
public final class ProtoNames {
    private ProtoNames() {}

    /**
     * Returns a package as it stands in a {@code .proto}, such as {@code com.acme.greeter}; empty for none.
     *
     * @throws SchemaException if the package is not a list of names with dots between them. A name consists of ASCII
     *     letters, digits and underscores, and begins with a letter
     */
    public static String checkedPackage(String protoPackage) {
        if (!protoPackage.matches("([A-Za-z][A-Za-z0-9_]*(\\.[A-Za-z][A-Za-z0-9_]*)*)?")) {
            throw new SchemaException(
                    "package " + protoPackage + " (expected: names of ASCII letters, digits and _, with dots between)");
        }
        return protoPackage;
    }

    /**
     * Returns the full name of a service in a {@code .proto}, such as {@code com.acme.Greeter}.
     *
     * @param protoPackage package of the file; empty for none
     * @param published name under which the service is published
     */
    public static String service(String protoPackage, String published) {
        return protoPackage.isEmpty() ? identifier(published) : protoPackage + '.' + identifier(published);
    }

    /**
     * Returns the name of a service or a method in a {@code .proto}. It begins with a capital letter, as is usual in
     * Protobuf, and has no character but ASCII letters and digits. For example, {@code say-hello} becomes
     * {@code SayHello}.
     *
     * @param published name under which the service or the method is published
     */
    public static String identifier(String published) {
        StringBuilder text = new StringBuilder();
        boolean up = true;
        for (int i = 0; i < published.length(); i++) {
            char c = published.charAt(i);
            if (c < 128 && (Character.isLetter(c) || Character.isDigit(c) && text.length() > 0)) {
                text.append(up ? Character.toUpperCase(c) : c);
                up = false;
            } else {
                up = true;
            }
        }
        return text.length() == 0 ? "X" : text.toString();
    }
}
