/* Extended attributes and POSIX ACLs of files. */
#ifndef ABX_PRIM_XATTRS_H
#define ABX_PRIM_XATTRS_H

/* Gives the open file `to` the attributes and the access ACL of the open file `from` (to be read), as far as the server
 * and the file system may; what cannot be copied is left out. Set the mode afterwards: an ACL holds one too. File
 * capabilities and signatures are not copied: they vouch for bytes. Blocking. */
void xattrs_copy(int from_fd, int to_fd);
/* The same from a regular file that need not be open. */
void xattrs_copy_entry(int dir_fd, const char *name, int to_fd);

#endif
