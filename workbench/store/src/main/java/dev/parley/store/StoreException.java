package dev.parley.store;

import org.jspecify.annotations.Nullable;

/** A store that cannot be used. The message is one line: what happened, to which file, what to do. */
public final class StoreException extends RuntimeException {
    /** What is wrong. */
    public enum Code {
        /** There is no such file. */
        MISSING,
        /** The file to be created is already there. */
        ALREADY_THERE,
        /** The file is something else. */
        NOT_A_STORE,
        /** The file was a store, and parts of it are missing or changed. */
        DAMAGED,
        /** Written by a later version, in a form that this one does not know. */
        NEWER_SCHEMA,
        /** Another process has it open for writing. */
        LOCKED,
        /** The folder or the file cannot be written, or the disk is full. */
        NOT_WRITABLE,
        /** The store was opened for reading only, or is closed. */
        NOT_OPEN_FOR_THAT,
        /** The database refused, for a reason that the message gives. */
        FAILED
    }

    private final Code code;

    StoreException(Code code, String message, @Nullable Throwable cause) {
        super(message, cause);
        this.code = code;
    }

    public Code code() {
        return code;
    }
}
