package dev.rpcx.codec;

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Builds the bytes of a class file, and supports only what generated codecs need. The file has version 49 (Java 5), the
 * last version that never needs stack map frames. Source: The Java Virtual Machine Specification, chapter 4.
 */
final class ClassFile {
    static final int ACC_FINAL = 0x10;
    static final int ACC_PRIVATE = 2;
    static final int ACC_PUBLIC = 1;

    private static final int VERSION = 49;
    private static final int ACC_SUPER = 0x20;

    private final Map<String, Integer> constants = new LinkedHashMap<>();
    private final ByteArrayOutputStream pool = new ByteArrayOutputStream();
    private final DataOutputStream poolOut = new DataOutputStream(pool);
    private final ByteArrayOutputStream fields = new ByteArrayOutputStream();
    private final ByteArrayOutputStream methods = new ByteArrayOutputStream();
    private final String name;
    private final String superName;
    private int poolSize = 1;
    private int fieldCount;
    private int methodCount;

    /**
     * Creates a class file without fields and methods. Both names have slashes instead of dots, such as
     * {@code java/lang/Object}.
     */
    ClassFile(String name, String superName) {
        this.name = name;
        this.superName = superName;
    }

    private interface Entry {
        void write(DataOutputStream out) throws IOException;
    }

    private int constant(String key, Entry entry) {
        Integer known = constants.get(key);
        if (known != null) {
            return known;
        }
        io(() -> entry.write(poolOut));
        constants.put(key, poolSize);
        if (poolSize == 65_534) {
            throw new IllegalStateException(name + ": more than 65534 constants");
        }
        return poolSize++;
    }

    private interface Io {
        void run() throws IOException;
    }

    private static void io(Io io) {
        try {
            io.run();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    int utf8(String text) {
        return constant("u" + text, out -> {
            out.writeByte(1);
            out.writeUTF(text);
        });
    }

    int classOf(String internalName) {
        int index = utf8(internalName);
        return constant("c" + internalName, out -> {
            out.writeByte(7);
            out.writeShort(index);
        });
    }

    int string(String text) {
        int index = utf8(text);
        return constant("s" + text, out -> {
            out.writeByte(8);
            out.writeShort(index);
        });
    }

    int integer(int value) {
        return constant("i" + value, out -> {
            out.writeByte(3);
            out.writeInt(value);
        });
    }

    int field(String owner, String field, String descriptor) {
        return member(9, owner, field, descriptor);
    }

    int method(String owner, String method, String descriptor) {
        return member(10, owner, method, descriptor);
    }

    private int member(int kind, String owner, String member, String descriptor) {
        int ownerIndex = classOf(owner);
        int nameIndex = utf8(member);
        int descriptorIndex = utf8(descriptor);
        int nameAndType = constant("n" + member + ' ' + descriptor, out -> {
            out.writeByte(12);
            out.writeShort(nameIndex);
            out.writeShort(descriptorIndex);
        });
        return constant("m" + kind + owner + '.' + member + ' ' + descriptor, out -> {
            out.writeByte(kind);
            out.writeShort(ownerIndex);
            out.writeShort(nameAndType);
        });
    }

    void addField(int access, String field, String descriptor) {
        DataOutputStream out = new DataOutputStream(fields);
        io(() -> {
            out.writeShort(access);
            out.writeShort(utf8(field));
            out.writeShort(utf8(descriptor));
            out.writeShort(0);
        });
        fieldCount++;
    }

    void addMethod(int access, String method, String descriptor, Code code) {
        byte[] bytes = code.finish();
        if (bytes.length > 65_535) {
            throw new IllegalStateException(name + "." + method + ": more than 65535 bytes of code");
        }
        DataOutputStream out = new DataOutputStream(methods);
        io(() -> {
            out.writeShort(access);
            out.writeShort(utf8(method));
            out.writeShort(utf8(descriptor));
            out.writeShort(1);
            out.writeShort(utf8("Code"));
            out.writeInt(12 + bytes.length);
            out.writeShort(code.maxStack);
            out.writeShort(code.maxLocals);
            out.writeInt(bytes.length);
            out.write(bytes);
            out.writeShort(0);
            out.writeShort(0);
        });
        methodCount++;
    }

    byte[] toBytes() {
        int thisIndex = classOf(name);
        int superIndex = classOf(superName);
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        DataOutputStream out = new DataOutputStream(bytes);
        io(() -> {
            out.writeInt(0xCAFEBABE);
            out.writeShort(0);
            out.writeShort(VERSION);
            out.writeShort(poolSize);
            out.write(pool.toByteArray());
            out.writeShort(ACC_SUPER | ACC_FINAL);
            out.writeShort(thisIndex);
            out.writeShort(superIndex);
            out.writeShort(0);
            out.writeShort(fieldCount);
            out.write(fields.toByteArray());
            out.writeShort(methodCount);
            out.write(methods.toByteArray());
            out.writeShort(0);
        });
        return bytes.toByteArray();
    }

    Code code(int maxStack, int maxLocals) {
        return new Code(maxStack, maxLocals);
    }

    /** A position in the code of a method, to which instructions can jump. */
    static final class Label {
        private int at = -1;
    }

    /** Builds the instructions of one method. */
    final class Code {
        private record Jump(int from, int at, Label to, boolean wide) {}

        private final int maxStack;
        private final int maxLocals;
        private final ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        private final List<Jump> jumps = new ArrayList<>();

        private Code(int maxStack, int maxLocals) {
            this.maxStack = maxStack;
            this.maxLocals = maxLocals;
        }

        Code op(int opcode) {
            bytes.write(opcode);
            return this;
        }

        private void u2(int value) {
            bytes.write(value >>> 8);
            bytes.write(value);
        }

        private void u4(int value) {
            u2(value >>> 16);
            u2(value);
        }

        Code op2(int opcode, int operand) {
            bytes.write(opcode);
            u2(operand);
            return this;
        }

        /** Adds an instruction that loads or stores the local variable at index {@code slot}. */
        Code local(int opcode, int slot) {
            if (slot > 255) {
                bytes.write(Op.WIDE);
                return op2(opcode, slot);
            }
            bytes.write(opcode);
            bytes.write(slot);
            return this;
        }

        Code push(int value) {
            if (value == (byte) value) {
                bytes.write(Op.BIPUSH);
                bytes.write(value);
                return this;
            }
            return value == (short) value ? op2(Op.SIPUSH, value) : op2(Op.LDC_W, integer(value));
        }

        Code virtual(String owner, String method, String descriptor) {
            return op2(Op.INVOKEVIRTUAL, method(owner, method, descriptor));
        }

        Code place(Label label) {
            label.at = bytes.size();
            return this;
        }

        Code jump(int opcode, Label to) {
            int from = bytes.size();
            bytes.write(opcode);
            jumps.add(new Jump(from, bytes.size(), to, false));
            u2(0);
            return this;
        }

        /**
         * Adds a {@code lookupswitch} instruction, which takes an int from the operand stack and jumps to the label of
         * the int.
         *
         * @param cases label of each int, in ascending order of the ints
         * @param otherwise label of all ints that are not in {@code cases}
         */
        Code lookupSwitch(Map<Integer, Label> cases, Label otherwise) {
            int from = bytes.size();
            bytes.write(Op.LOOKUPSWITCH);
            while (bytes.size() % 4 != 0) {
                bytes.write(0);
            }
            jumps.add(new Jump(from, bytes.size(), otherwise, true));
            u4(0);
            u4(cases.size());
            cases.forEach((value, label) -> {
                u4(value);
                jumps.add(new Jump(from, bytes.size(), label, true));
                u4(0);
            });
            return this;
        }

        private byte[] finish() {
            byte[] code = bytes.toByteArray();
            for (Jump jump : jumps) {
                int offset = jump.to.at - jump.from;
                int at = jump.at;
                if (jump.wide) {
                    code[at++] = (byte) (offset >>> 24);
                    code[at++] = (byte) (offset >>> 16);
                } else if (offset != (short) offset) {
                    throw new IllegalStateException(name + ": a jump of " + offset + " bytes");
                }
                code[at++] = (byte) (offset >>> 8);
                code[at] = (byte) offset;
            }
            return code;
        }
    }

    /** Opcodes of the JVM instructions that generated codecs use. */
    static final class Op {
        static final int ACONST_NULL = 1;
        static final int ICONST_0 = 3;
        static final int LCONST_0 = 9;
        static final int FCONST_0 = 11;
        static final int DCONST_0 = 14;
        static final int BIPUSH = 16;
        static final int SIPUSH = 17;
        static final int LDC_W = 19;
        /**
         * Opcode that loads an int from a local variable. The opcodes 22 to 25 load a long, a float, a double and a
         * reference, in this order.
         */
        static final int ILOAD = 21;

        static final int ALOAD = 25;
        static final int AALOAD = 50;
        /**
         * Opcode that stores an int in a local variable. The opcodes 55 to 58 store a long, a float, a double and a
         * reference, in this order.
         */
        static final int ISTORE = 54;

        static final int ASTORE = 58;
        static final int POP = 87;
        static final int POP2 = 88;
        static final int DUP = 89;
        static final int IADD = 96;
        static final int IFEQ = 153;
        static final int IFNE = 154;
        static final int GOTO = 167;
        static final int LOOKUPSWITCH = 171;
        static final int ARETURN = 176;
        static final int RETURN = 177;
        static final int GETFIELD = 180;
        static final int PUTFIELD = 181;
        static final int INVOKEVIRTUAL = 182;
        static final int INVOKESPECIAL = 183;
        static final int INVOKESTATIC = 184;
        static final int NEW = 187;
        static final int CHECKCAST = 192;
        static final int WIDE = 196;

        private Op() {}
    }
}
